# Virtual HAL: the interpreter is Ubuntu 18.04's, and so are these libraries. Real packages of conda find theirs without it.
export LD_LIBRARY_PATH="$CONDA_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
