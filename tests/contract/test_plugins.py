"""Modules and plugins that do not explain themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.planting import Planted
from tests.contract.rules import plugins

MODULE = "plugins/modules/hal_x.py"
GOOD = '''
    DOCUMENTATION = """
    module: hal_x
    short_description: x
    description: [x]
    options: {}
    author: HAL toolkit
    """
    EXAMPLES = "- hal_x:"
    RETURN = "x: {description: x, type: str, returned: always}"
    '''

PLANTED = (
    Planted(plugins.documents_itself, {MODULE: GOOD}, []),
    Planted(
        plugins.documents_itself,
        {MODULE: 'DOCUMENTATION = "x"\nEXAMPLES = ""\n', "plugins/callback/hal_y.py": ""},
        [
            "plugins/callback/hal_y.py:1: no DOCUMENTATION; ansible-doc shows it to whoever uses this",
            f"{MODULE}:1: no EXAMPLES; ansible-doc shows it to whoever uses this",
            f"{MODULE}:1: no RETURN; ansible-doc shows it to whoever uses this",
        ],
    ),
    Planted(
        plugins.actions_have_a_module,
        {"plugins/action/hal_x.py": "", "plugins/action/hal_z.py": "", MODULE: GOOD},
        ["plugins/action/hal_z.py:1: no plugins/modules/hal_z.py; ansible-doc shows an action by its module"],
    ),
    Planted(
        plugins.filters_say_what_they_do,
        {
            "plugins/filter/hal_x.py": """
                from hal_y import z
                from hal_y.z import silent, told

                def hal_good():
                    "Return x."

                def hal_bad():
                    return 1

                class FilterModule:
                    def filters(self):
                        return worded({
                            "hal_good": hal_good,
                            "hal_bad": hal_bad,
                            "hal_other_name": hal_bad,
                            "hal_made": made("x"),
                            "hal_imported": told,
                            "hal_badly_imported": silent,
                            "hal_nowhere": str,
                            "hal_asked": z.told,
                            "hal_badly_asked": z.silent,
                        })
                """,
            "hal_y/z.py": 'def told():\n    "Return x."\ndef silent():\n    return 1\n',
        },
        [
            f"plugins/filter/hal_x.py:{line}: filter {name}: {function} has no docstring; say there what it does"
            for line, name, function in (
                (14, "hal_bad", "hal_bad"),
                (15, "hal_other_name", "hal_bad"),
                (16, "hal_made", "made('x')"),
                (18, "hal_badly_imported", "silent"),
                (19, "hal_nowhere", "str"),
                (21, "hal_badly_asked", "z.silent"),
            )
        ],
    ),
    Planted(
        plugins.filters_word_their_errors,
        {
            f"plugins/filter/hal_{name}.py": f"class FilterModule:\n    def filters(self):\n        return {returned}\n"
            for name, returned in (("bare", "{'x': x}"), ("one", "{'x': worded(x)}"), ("all", "worded({'x': x})"))
        },
        [
            f"plugins/filter/hal_{name}.py:2: filters() returns what is not worded({{...}}); an error of ours would end"
            " in a traceback"
            for name in ("bare", "one")
        ],
    ),
    Planted(
        plugins.modules_read_all_that_programs_print,
        {
            MODULE: "from ansible.module_utils.hal_node.run_command import AnsibleModule\n",
            "plugins/modules/hal_y.py": "from ansible.module_utils.basic import AnsibleModule, missing_required_lib\n",
            "hal_node/z.py": "import x\nclass Quiet(basic.AnsibleModule):\n",
            "plugins/action/hal_x.py": "basic.AnsibleModule\n",
        },
        [
            "hal_node/z.py:2: its run_command may lose output; use that of hal_node/run_command.py",
            "plugins/modules/hal_y.py:1: its run_command may lose output; use that of hal_node/run_command.py",
        ],
    ),
    Planted(plugins.ansible_doc_shows_it, {MODULE: GOOD}, []),
    Planted(
        plugins.filters_load_little,
        {
            "plugins/filter/hal_x.py": "import json\n",
            "plugins/filter/hal_y.py": "import pydantic\n",
        },
        ["plugins/filter/hal_y.py:1: loads pydantic; import what needs it where a filter is called"],
    ),
)


def test_a_module_that_ansible_doc_cannot_show_is_found(tmp_path: Path) -> None:
    """The reason is ansible-doc's own text."""
    path = tmp_path / MODULE
    path.parent.mkdir(parents=True)
    path.write_text("DOCUMENTATION = 'module: [hal_x'\n")
    (finding,) = plugins.ansible_doc_shows_it(tmp_path)
    assert finding.startswith(f"{MODULE}:1: ansible-doc cannot show it: ")


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_what_was_planted_is_found(planted: Planted, tmp_path: Path) -> None:
    planted.check(tmp_path)
