/**
 * The system call profile as an engine makes it, without an engine: libseccomp compiles the text,
 * the kernel loads it for one program, and what it says for another machine is read off the
 * compiled program.
 */
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { z } from 'zod'

import { runBpf } from './seccomp-bpf.ts'

const SOURCE = fileURLToPath(new URL('seccomp-filter.c', import.meta.url))

const runFile = promisify(execFile)

export const profileSchema = z.strictObject({
  defaultAction: z.literal('SCMP_ACT_ERRNO'),
  defaultErrnoRet: z.literal(1),
  archMap: z.array(z.strictObject({ architecture: z.string(), subArchitectures: z.array(z.string()) })),
  syscalls: z.array(
    z.strictObject({
      comment: z.string().optional(),
      names: z.array(z.string()),
      action: z.enum(['SCMP_ACT_ALLOW', 'SCMP_ACT_ERRNO']),
      errnoRet: z.int().nonnegative().optional(),
      args: z
        .array(
          z.strictObject({
            index: z.int(),
            value: z.number(),
            valueTwo: z.number(),
            op: z.enum(['SCMP_CMP_MASKED_EQ', 'SCMP_CMP_EQ', 'SCMP_CMP_NE']),
          }),
        )
        .optional(),
      includes: z.strictObject({ arches: z.array(z.string()) }).optional(),
    }),
  ),
})

export type Profile = z.infer<typeof profileSchema>

/** The kernel's reaction to a call: passes it, answers an errno, or ends the program. */
export type FilterAnswer = 'allow' | 'kill' | number

/** Names of libseccomp and `uname -m`; engines use Go's names, and so does the profile. */
const ARCHITECTURES = { x86_64: 'amd64', aarch64: 'arm64' } as const
export type Architecture = keyof typeof ARCHITECTURES

/** The tokens of linux/audit.h, which the kernel puts beside each call. */
const AUDIT = { x86_64: 0xc000003e, aarch64: 0xc00000b7 } as const

export const ownArchitecture: Architecture = process.arch === 'arm64' ? 'aarch64' : 'x86_64'

/** One compiled profile of one architecture. */
export class CompiledFilter {
  readonly #program: Buffer
  readonly #numbers: ReadonlyMap<string, number>
  readonly architecture: Architecture

  constructor(architecture: Architecture, program: Buffer, numbers: ReadonlyMap<string, number>) {
    this.architecture = architecture
    this.#program = program
    this.#numbers = numbers
  }

  /**
   * Undefined where this architecture has no such call, or the libseccomp that is installed knows
   * none.
   */
  byName(name: string, ...args: bigint[]): FilterAnswer | undefined {
    const number = this.#numbers.get(name)
    return number === undefined ? undefined : this.byNumber(number, ...args)
  }

  /** The architecture that makes the call; with another audit token, the one that it claims. */
  byNumber(number: number, ...args: bigint[]): FilterAnswer {
    return this.as(AUDIT[this.architecture], number, ...args)
  }

  as(audit: number, number: number, ...args: bigint[]): FilterAnswer {
    const data = Buffer.alloc(64)
    data.writeUInt32LE(number, 0)
    data.writeUInt32LE(audit, 4)
    args.forEach((argument, index) => data.writeBigUInt64LE(BigInt.asUintN(64, argument), 16 + 8 * index))
    return meaning(runBpf(this.#program, data))
  }
}

/** SECCOMP_RET_… of linux/seccomp.h: what to do in the upper half, the errno in the lower. */
function meaning(answer: number): FilterAnswer {
  const action = (answer & 0xffff0000) >>> 0
  if (action === 0x7fff0000) return 'allow'
  if (action === 0x00050000) return answer & 0xffff
  if (action === 0 || action === 0x80000000) return 'kill'
  throw new Error(`The filter answers 0x${answer.toString(16)}, which no profile of ours can mean.`)
}

/** Output and exit of a program behind the filter. */
export interface FilteredRun {
  code?: number
  signal?: string
  output: string
}

/**
 * libseccomp, with a small program of ours around it that is compiled here. Needs gcc and
 * libseccomp-dev.
 */
export class FilterCompiler {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async build(): Promise<FilterCompiler> {
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-seccomp-'))
    const flags = ['-std=gnu11', '-O1', '-Wall', '-Wextra', '-Werror']
    await runFile('gcc', [...flags, '-o', join(folder, 'seccomp-filter'), SOURCE, '-lseccomp'])
    return new FilterCompiler(folder)
  }

  async dispose(): Promise<void> {
    await rm(this.#folder, { recursive: true })
  }

  async compile(profile: string, architecture: Architecture): Promise<CompiledFilter> {
    const rules = await this.#rules(profile, architecture)
    const program = await runFile(this.#binary, ['program', architecture, rules], { encoding: 'buffer' })
    const numbers = [...(await this.names(architecture))].map(([number, name]) => [name, number] as const)
    return new CompiledFilter(architecture, program.stdout, new Map(numbers))
  }

  /** The names of the system calls of an architecture, by number. */
  async names(architecture: Architecture): Promise<Map<number, string>> {
    const { stdout } = await runFile(this.#binary, ['numbers', architecture])
    const lines = stdout.trim().split('\n')
    return new Map(lines.map((line) => [parseInt(line, 10), line.slice(line.indexOf(' ') + 1)]))
  }

  /**
   * Runs the shell text on this machine, in no container, as nobody in particular and behind the
   * filter.
   */
  async shell(profile: string, command: string, scratch: string): Promise<FilteredRun> {
    const rules = await this.#rules(profile, ownArchitecture)
    const child = spawn(this.#binary, ['run', rules, 'bash', '-c', `exec 2>&1\n${command}`], {
      cwd: '/',
      env: { PATH: '/usr/local/bin:/usr/bin:/bin', TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = new Promise<Omit<FilteredRun, 'output'>>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) =>
        resolve({ ...(code !== null && { code }), ...(signal !== null && { signal }) }),
      )
    })
    const [how, output, complaint] = await Promise.all([ended, text(child.stdout), text(child.stderr)])
    if (complaint !== '') throw new Error(`The filter could not be loaded: ${complaint}`)
    return { ...how, output }
  }

  get #binary(): string {
    return join(this.#folder, 'seccomp-filter')
  }

  /**
   * A file with what an engine on a machine of this architecture takes from the profile, as
   * seccomp-filter.c reads it.
   */
  async #rules(profile: string, architecture: Architecture): Promise<string> {
    const file = join(this.#folder, `rules-${randomUUID()}`)
    await writeFile(file, rulesOf(profile, architecture))
    return file
  }
}

function rulesOf(profile: string, architecture: Architecture): string {
  const { defaultErrnoRet, syscalls } = profileSchema.parse(JSON.parse(profile))
  const lines = syscalls
    .filter(({ includes }) => includes?.arches.includes(ARCHITECTURES[architecture]) ?? true)
    .flatMap(({ names, action, errnoRet, args = [] }) => {
      const answer = action === 'SCMP_ACT_ALLOW' ? 'allow' : (errnoRet ?? defaultErrnoRet)
      const conditions = args.map(({ index, op, value, valueTwo }) => `${index} ${op} ${value} ${valueTwo}`)
      return names.map((name) => [name, answer, args.length, ...conditions].join(' '))
    })
  return [`default ${defaultErrnoRet}`, ...lines, ''].join('\n')
}
