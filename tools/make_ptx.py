#!/usr/bin/env python3
"""Makes the PTX of the CUDA kernels that tests run in an interpreter (tests/cuda/ptx): with the device's mathematics and
with the reference math's.

    tools/make_ptx.py find [NVCC]                                        the compiler to use; 1 and why where there is none
    tools/make_ptx.py compile NVCC ARCHITECTURE SOURCE.cu TO.ptx [TREE]  with headers of TREE/src, and TO.d for the build
"""

import pathlib
import sys

import cuda_code


def compile_command(nvcc, architecture, source, to, tree=cuda_code.ROOT):
    return [nvcc, f"-I{tree}/src", *cuda_code.FLAGS, "-DWEFT_REFERENCE_KERNELS", "-ptx", f"-arch=compute_{architecture}",
            "-MD", "-MF", str(pathlib.Path(to).with_suffix(".d")), str(source), "-o", str(to)]


def main():
    verb, *words = sys.argv[1:]
    if verb == "find":
        tools, problem = cuda_code.find_tools(words[0] if words else "")
        print(tools[0] if tools else problem)
        return 0 if tools else 1
    print(cuda_code.run(compile_command(*words)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
