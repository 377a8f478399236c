# Stand-in of the virtual HAL. What WMLCE's packages do in such scripts: variables, and folders before others.
export TF_STAND_IN="of the virtual HAL"
export TF_HOME="$CONDA_PREFIX/share/tensorflow"
export LD_LIBRARY_PATH="$CONDA_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
tf_helper() { :; }
