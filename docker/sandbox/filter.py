"""
Compiles the system call profile for this machine's architecture, into BPF that sbxd loads:

    python3 filter.py seccomp.json seccomp-debug.json FOLDER

writes FOLDER/default.bpf and FOLDER/debug.bpf. Fails at a rule that it does not know.
"""
import json
import os
import platform
import struct
import sys
import tempfile

import seccomp

# Names that profiles use for what `uname -m` prints.
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
HIGHEST_NUMBER = 1024
LOAD, JUMP_IF_GREATER, RETURN = 0x20, 0x25, 0x06
REFUSE_ENOSYS = 0x00050000 | 38


def name_of(number):
    try:
        return seccomp.resolve_syscall(seccomp.Arch(), number).decode()
    except ValueError:
        return None


KNOWN = {name_of(number): number for number in range(HIGHEST_NUMBER)}
del KNOWN[None]


def action(rule, default):
    if rule["action"] == "SCMP_ACT_ALLOW":
        return seccomp.ALLOW
    if rule["action"] == "SCMP_ACT_ERRNO":
        return seccomp.ERRNO(rule.get("errnoRet", default))
    raise ValueError(f"unknown action {rule['action']}")


def condition(arg):
    operator = getattr(seccomp, arg["op"].removeprefix("SCMP_CMP_"))
    return seccomp.Arg(arg["index"], operator, arg["value"], arg["valueTwo"])


def compile_rules(default, rules):
    program = seccomp.SyscallFilter(seccomp.ERRNO(default))
    for rule in rules:
        strange = rule.keys() - {"comment", "names", "action", "errnoRet", "args", "includes"}
        if strange:
            raise ValueError(f"unknown in a rule: {strange}")
        if ARCHITECTURE not in rule.get("includes", {}).get("arches", [ARCHITECTURE]):
            continue
        for name in rule["names"]:
            if name in KNOWN:
                program.add_rule(action(rule, default), name, *map(condition, rule.get("args", [])))
    with tempfile.TemporaryFile() as file:
        program.export_bpf(file)
        file.seek(0)
        return file.read()


def unknown_calls():
    """
    ENOSYS for calls that are newer than this libseccomp, as engines answer them: programs then use
    an older call, which they do not at EPERM.
    """
    instructions = [(LOAD, 0, 0, 0), (JUMP_IF_GREATER, 0, 1, max(KNOWN.values())), (RETURN, 0, 0, REFUSE_ENOSYS)]
    return b"".join(struct.pack("=HBBI", *each) for each in instructions)


def main(profile_file, additions_file, folder):
    with open(profile_file) as profile_text, open(additions_file) as additions_text:
        profile, additions = json.load(profile_text), json.load(additions_text)
    if profile["defaultAction"] != "SCMP_ACT_ERRNO":
        raise ValueError("the profile does not refuse by default")
    for name, rules in ("default", profile["syscalls"]), ("debug", profile["syscalls"] + additions):
        with open(os.path.join(folder, f"{name}.bpf"), "wb") as file:
            file.write(unknown_calls() + compile_rules(profile["defaultErrnoRet"], rules))


main(*sys.argv[1:])
