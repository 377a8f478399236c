"""Keep what zipimport compiles in the folder that TESTS_COMPILED names: modules come in an archive at each call.

Python finds this through PYTHONPATH when it starts, any Python: see tests/unit/warm.py. The same text gives the same
code, whatever archive it is in; only tracebacks name another.
"""

import marshal
import os
import zipimport

if os.environ.get("TESTS_COMPILED") and hasattr(zipimport, "_compile_source"):  # not before Python 3.8
    import _imp

    _compile = zipimport._compile_source

    def _kept(path, source):  # type: ignore[no-untyped-def]  # Python 2.7 reads this file, too
        name = path.rpartition(".zip")[2].replace(os.sep, "-") + _imp.source_hash(0, bytes(source)).hex()
        name = os.path.join(os.environ["TESTS_COMPILED"], name)
        try:
            with open(name, "rb") as stream:
                return marshal.load(stream)
        except (EOFError, OSError, ValueError):
            pass
        code = _compile(path, source)
        own = name + "." + str(os.getpid())
        with open(own, "wb") as stream:
            marshal.dump(code, stream)
        os.rename(own, name)
        return code

    zipimport._compile_source = _kept
