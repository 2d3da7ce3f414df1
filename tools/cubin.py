"""Reads machine code of NVIDIA devices from a cubin: which instructions, and how many on a way through a kernel.

Instructions of sm_80 to sm_90 are 16 bytes. Bits 0 to 8 name the operation, bits 9 to 11 the form of its operands, bits
12 to 15 the predicate (7: always). The numbers were found with one-instruction probes through ptxas 13.0.
"""

import struct

NAMES = {0x181: "LDG", 0x186: "STG", 0x184: "LDS", 0x188: "STS", 0x183: "LDL", 0x187: "STL", 0x11D: "BAR",
         0x147: "BRA", 0x14D: "EXIT", 0x118: "NOP", 0x143: "CALL", 0x144: "CALL", 0x150: "RET", 0x102: "FCHK",
         0x03C: "HMMA"}
WIDTHS = {0: "U8", 1: "S8", 2: "U16", 3: "S16", 4: "32", 5: "64", 6: "128"}
# Ways that ordinary values do not take: subroutines; and where a kernel has another way, a division's check of its
# operands.
SUBROUTINES = {"CALL", "RET"}
RARE = SUBROUTINES | {"FCHK"}


class Instruction:
    def __init__(self, low, high):
        self.name = NAMES.get(low & 0x1FF, "")
        self.is_certain = low >> 12 & 0xF == 7
        self.low, self.high = low, high

    def access(self):
        """LDG.128 and so on; None for what is no access of memory."""
        if self.name in ("LDG", "STG", "LDS", "STS", "LDL", "STL"):
            return f"{self.name}.{WIDTHS.get(self.high >> 9 & 7, '?')}"
        return None

    def jump(self):
        """How many instructions on from the next one a branch goes."""
        offset = ((self.low >> 34 | (self.high & 0x3FFFF) << 30) << 8) | (self.low >> 16 & 0xFF)
        if offset >= 1 << 55:
            offset -= 1 << 56
        return offset // 4


def kernels(path):
    """{name: its instructions} of a cubin."""
    data = path.read_bytes()
    if data[:4] != b"\x7fELF":
        raise ValueError(f"{path} is no cubin")
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    found = {}
    for section in sections:
        begin = sections[names][4] + section[0]
        name = data[begin:data.index(b"\0", begin)].decode()
        if name.startswith(".text."):
            code = data[section[4]:section[4] + section[5]]
            found[name[6:]] = [Instruction(*words) for words in struct.iter_unpack("<QQ", code)]
    return found


def instructions_of_way(code):
    """Instructions on the longest way forward from the first to an EXIT that enters nothing rare; loops once."""
    way = longest_way(code, RARE)
    return way if way > 0 else longest_way(code, SUBROUTINES)


def longest_way(code, rare):
    unreachable = -1
    longest = [unreachable] * (len(code) + 1)
    for i in range(len(code) - 1, -1, -1):
        instruction = code[i]
        after = []
        if instruction.name == "EXIT":
            longest[i] = 1
            after = [] if instruction.is_certain else [i + 1]
        elif instruction.name in rare:
            continue
        elif instruction.name == "BRA":
            target = i + 1 + instruction.jump()
            if target <= i and instruction.is_certain:
                longest[i] = 1
                continue
            after = ([target] if target > i else []) + ([] if instruction.is_certain else [i + 1])
        else:
            after = [i + 1]
        for j in after:
            if j <= len(code) and longest[j] != unreachable:
                longest[i] = max(longest[i], longest[j] + 1)
    return longest[0]
