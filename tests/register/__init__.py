"""The register of proofs: which scenarios and slow proofs were green with exactly what they depend on now.

`names.py` says what a file names, `depends.py` which files a scenario depends on, `witness.py` which ones a run read,
`proofs.py` keeps a file a proof in tests/proofs/. tests/run.py writes them, and nobody else.
"""
