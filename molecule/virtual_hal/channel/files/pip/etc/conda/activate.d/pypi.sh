# Virtual nodes reach no network: this folder stands for PyPI.
export PIP_NO_INDEX=1
export PIP_FIND_LINKS="$CONDA_PREFIX/share/pypi"
