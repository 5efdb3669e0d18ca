"""Switches of the libraries that PyTorch computes with; they can be set, and change nothing but for ``mha``."""

from twofold.backends import cuda as cuda
from twofold.backends import cudnn as cudnn
from twofold.backends import mha as mha
from twofold.backends import mkl as mkl
from twofold.backends import mkldnn as mkldnn
from twofold.backends import mps as mps
from twofold.backends import openmp as openmp
