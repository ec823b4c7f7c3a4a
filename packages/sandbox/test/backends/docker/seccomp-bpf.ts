/**
 * Classic BPF as the kernel runs it for seccomp: 32-bit words, forward jumps, `struct seccomp_data`
 * as the packet.
 */

/** Bytes of one instruction: code (2), jump if true (1), jump if false (1), constant (4). */
const INSTRUCTION = 8

/** The kernel takes no more than this many instructions (BPF_MAXINSNS). */
const MOST_INSTRUCTIONS = 4096

/**
 * Runs a compiled filter on one call and returns its answer (SECCOMP_RET_…). Throws at an
 * instruction that a seccomp filter may not have, or that libseccomp never writes.
 */
export function runBpf(program: Buffer, data: Buffer): number {
  const length = program.length / INSTRUCTION
  if (length > MOST_INSTRUCTIONS) throw new Error(`${length} instructions are more than the kernel takes.`)
  let accumulator = 0
  const scratch = new Uint32Array(16)
  for (let at = 0; at < length; at += 1) {
    const code = program.readUInt16LE(at * INSTRUCTION)
    const ifTrue = program.readUInt8(at * INSTRUCTION + 2)
    const ifFalse = program.readUInt8(at * INSTRUCTION + 3)
    const k = program.readUInt32LE(at * INSTRUCTION + 4)
    switch (code) {
      case 0x20: // ld [k]
        accumulator = data.readUInt32LE(k)
        break
      case 0x00: // ld #k
        accumulator = k
        break
      case 0x60: // ld M[k]
        accumulator = scratch[k] ?? 0
        break
      case 0x02: // st M[k]
        scratch[k] = accumulator
        break
      case 0x54: // and #k
        accumulator = (accumulator & k) >>> 0
        break
      case 0x05: // ja
        at += k
        break
      case 0x15: // jeq
        at += accumulator === k ? ifTrue : ifFalse
        break
      case 0x25: // jgt
        at += accumulator > k ? ifTrue : ifFalse
        break
      case 0x35: // jge
        at += accumulator >= k ? ifTrue : ifFalse
        break
      case 0x45: // jset
        at += (accumulator & k) === 0 ? ifFalse : ifTrue
        break
      case 0x06: // ret #k
        return k
      default:
        throw new Error(`Instruction ${at} is 0x${code.toString(16)}, which no such filter has.`)
    }
  }
  throw new Error('The filter ends without an answer.')
}
