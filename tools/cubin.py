"""Reads machine code of NVIDIA devices from a cubin: which instructions, and how many on a way through a kernel.

Instructions of sm_80 to sm_120 are 16 bytes. Bits 0 to 8 name the operation, bits 9 to 11 the form of its operands, bits
12 to 15 the predicate (7: always). A branch may ask for more: the uniform predicate of its form 2, and bit 91 of one
that goes where a warp has parted. The numbers were found with one-instruction probes through ptxas 13.0, for each of
the architectures; what differs between them is where a branch holds its distance.
"""

import struct

ARCHITECTURES = {"80", "86", "89", "90", "100", "120"}
NAMES = {0x181: "LDG", 0x186: "STG", 0x184: "LDS", 0x188: "STS", 0x183: "LDL", 0x187: "STL", 0x11D: "BAR",
         0x147: "BRA", 0x14D: "EXIT", 0x118: "NOP", 0x143: "CALL", 0x144: "CALL", 0x150: "RET", 0x102: "FCHK",
         0x03C: "HMMA"}
WIDTHS = {0: "U8", 1: "S8", 2: "U16", 3: "S16", 4: "32", 5: "64", 6: "128"}
# Ways that ordinary values do not take: subroutines; and where a kernel has another way, a division's check of its
# operands.
SUBROUTINES = {"CALL", "RET"}
RARE = SUBROUTINES | {"FCHK"}


class Instruction:
    def __init__(self, low, high, architecture):
        self.name = NAMES.get(low & 0x1FF, "")
        self.is_certain = low >> 12 & 0xF == 7 and (self.name != "BRA" or low >> 9 & 7 != 2)
        self.is_of_parted_warps = self.name == "BRA" and low >> 9 & 7 != 2 and high >> 27 & 1 == 1
        self.low, self.high, self.architecture = low, high, architecture

    def access(self):
        """LDG.128 and so on; None for what is no access of memory."""
        if self.name in ("LDG", "STG", "LDS", "STS", "LDL", "STL"):
            return f"{self.name}.{WIDTHS.get(self.high >> 9 & 7, '?')}"
        return None

    def jump(self):
        """How many instructions on from the next one a branch goes."""
        words = self.low >> 34 | (self.high & 0x3FFFF) << 30
        if self.architecture < 90:
            return signed(words, 48) // 4
        return signed(words << 8 | (self.low >> 16 & 0xFF), 56) // 4


def signed(number, bits):
    return number - (1 << bits) if number >> (bits - 1) else number


def kernels(path, architecture):
    """{name: its instructions} of a cubin for it."""
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
            found[name[6:]] = [Instruction(*words, int(architecture)) for words in struct.iter_unpack("<QQ", code)]
    return found


def instructions_of_way(code):
    """Instructions on the longest way from the first to an EXIT, of those that store the most; without rare ones where
    such a way stores as much; through each loop once. A way that leaves early is short and says nothing. 0: there is
    none."""
    ordinary, any_way = longest_way(code, RARE), longest_way(code, SUBROUTINES)
    return (ordinary if ordinary[0] == any_way[0] else any_way)[1]


END = -1


def blocks_of(code, rare):
    """{first instruction: (stores, instructions, where it goes on)}, of runs that are entered at the first alone."""
    goes_on = {}
    for i, instruction in enumerate(code):
        after = [] if instruction.is_certain else [i + 1]
        if instruction.name == "EXIT":
            after.append(END)
        elif instruction.is_of_parted_warps:
            after = [i + 1]
        # A call that is not certain is a far branch.
        elif instruction.name == "BRA" or (instruction.name == "CALL" and not instruction.is_certain):
            after.append(i + 1 + instruction.jump())
        elif instruction.name == "FCHK" and "FCHK" in rare:
            after = []
        elif instruction.name not in SUBROUTINES:
            after = [i + 1]
        goes_on[i] = [j for j in after if j < len(code)]
    entered = {0, *(j for i, after in goes_on.items() for j in after if after != [i + 1])}
    blocks = {}
    for first in entered - {END}:
        last = first
        while goes_on[last] == [last + 1] and last + 1 not in entered:
            last += 1
        stores = sum(instruction.name == "STG" for instruction in code[first:last + 1])
        blocks[first] = (stores, last + 1 - first, set(goes_on[last]))
    return blocks


def reached(first, after):
    """Where ways from it lead; not itself unless they come back."""
    found, waiting = set(), [first]
    while waiting:
        for j in after[waiting.pop()]:
            if j != END and j not in found:
                found.add(j)
                waiting.append(j)
    return found


def straighten(after):
    """Each loop is gone through once: from its end ways go on to where it is left. An outer one before those in it."""
    while True:
        ahead = {i: reached(i, after) for i in after}
        some = next((i for i in after if i in ahead[i]), None)
        if some is None:
            return
        loop = {i for i in ahead[some] if some in ahead[i]}
        head = min(i for i in loop if i == 0 or any(i in after[j] for j in after.keys() - loop))
        leaves = {j for i in loop for j in after[i]} - loop
        for i in loop:
            if head in after[i]:
                after[i] = after[i] - {head} | leaves


def longest_way(code, rare):
    """(stores, instructions)"""
    blocks = blocks_of(code, rare)
    after = {first: set(to) for first, (_, _, to) in blocks.items()}
    after = {first: to for first, to in after.items() if first == 0 or first in reached(0, after)}
    straighten(after)
    longest, waiting = {END: (0, 0)}, [0]
    while waiting:
        first = waiting[-1]
        unknown = [j for j in after[first] if j not in longest]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        known = [longest[j] for j in after[first] if longest[j] is not None]
        stores, count, _ = blocks[first]
        longest[first] = tuple(map(sum, zip(max(known), (stores, count)))) if known else None
    return longest[0] or (0, 0)
