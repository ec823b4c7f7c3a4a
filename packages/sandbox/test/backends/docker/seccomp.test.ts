import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { readSeccompProfile } from '../../../src/backends/docker/seccomp.ts'
import {
  type CompiledFilter,
  type FilterAnswer,
  FilterCompiler,
  type Profile,
  profileSchema,
} from './seccomp-filter.ts'

let text: string
let debugText: string
let profile: Profile
let debug: Profile
let compiler: FilterCompiler
let filters: CompiledFilter[]
let debugFilters: CompiledFilter[]
beforeAll(async () => {
  text = await readSeccompProfile()
  debugText = await readSeccompProfile('debug')
  profile = profileSchema.parse(JSON.parse(text))
  debug = profileSchema.parse(JSON.parse(debugText))
  compiler = await FilterCompiler.build()
  filters = await compiled(text)
  debugFilters = await compiled(debugText)
})
afterAll(() => compiler.dispose())

function compiled(from: string): Promise<CompiledFilter[]> {
  return Promise.all(
    (['x86_64', 'aarch64'] as const).map((architecture) => compiler.compile(from, architecture)),
  )
}

/**
 * Answer of the compiled filters, the same for every architecture that has the call; undefined when
 * none has.
 */
function decideIn(all: CompiledFilter[], name: string, ...args: bigint[]): FilterAnswer | undefined {
  const answers = all.map((filter) => filter.byName(name, ...args)).filter((answer) => answer !== undefined)
  expect(new Set(answers).size, `${name}: ${answers.join(', ')}`).toBeLessThan(2)
  return answers[0]
}

const decide = (name: string, ...args: bigint[]): FilterAnswer | undefined => decideIn(filters, name, ...args)

const EPERM = 1
const ENOSYS = 38
const EOPNOTSUPP = 95

/**
 * Audit tokens of other machines, two of which these two can run programs of; and the bit of x32 in
 * a call’s number.
 */
const I386 = 0x40000003
const ARM = 0x40000028
const RISCV = 0xc00000f3
const X32 = 0x40000000
const upperHalf = fc.bigInt({ min: 0n, max: 0xffffffffn }).map((half) => half << 32n)

const RLIMIT_CORE = 4n
const resource = fc.bigInt({ min: 0n, max: 15n })
const pointer = fc.bigInt({ min: 4096n, max: 2n ** 47n - 1n })
const SUCCESS = 0

test('limits: one’s own, never another process’s, whatever the upper half says', () => {
  fc.assert(
    fc.property(upperHalf, fc.bigInt({ min: 1n, max: 0xffffffffn }), resource, (upper, pid, which) => {
      expect(decide('prlimit64', upper, which, 0n, 4096n)).toBe('allow')
      expect(decide('prlimit64', upper | pid, which, 0n, 4096n)).toBe(EPERM)
    }),
  )
})

test('every limit can be set but that of core files, which stays as it is and says nothing', () => {
  fc.assert(
    fc.property(upperHalf, resource, pointer, pointer, (upper, which, wanted, was) => {
      const core = which === RLIMIT_CORE
      expect(decide('setrlimit', upper | which, wanted)).toBe(core ? SUCCESS : 'allow')
      expect(decide('prlimit64', upper, upper | which, wanted, 0n)).toBe(core ? SUCCESS : 'allow')
      expect(decide('prlimit64', upper, upper | which, wanted, was)).toBe(core ? EPERM : 'allow')
      expect(decide('prlimit64', upper, upper | which, 0n, was)).toBe('allow')
    }),
    { examples: [0n, 1n << 32n].map((upper) => [upper, RLIMIT_CORE, 4096n, 8192n]) },
  )
})

const processId = fc.bigInt({ min: 2n, max: 2n ** 22n - 1n })

test.each(
  'tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo sched_setaffinity sched_setattr sched_setparam sched_setscheduler'.split(
    ' ',
  ),
)('%s: of every process but the first, whatever the upper half says', (name) => {
  fc.assert(
    fc.property(upperHalf, processId, (upper, pid) => {
      expect(decide(name, upper | 1n)).toBe(EPERM)
      expect(decide(name, upper)).toBe('allow')
      expect(decide(name, upper | pid)).toBe('allow')
    }),
  )
})

test.each([
  ['setpriority', 0n],
  ['ioprio_set', 1n],
])('%s: of one process that is not the first, never of a group or a user', (name, oneProcess) => {
  fc.assert(
    fc.property(upperHalf, upperHalf, processId, (upper, other, pid) => {
      expect(decide(name, upper | oneProcess, other | 1n)).toBe(EPERM)
      expect(decide(name, upper | oneProcess, other)).toBe('allow')
      expect(decide(name, upper | oneProcess, other | pid)).toBe('allow')
      for (const which of [0n, 1n, 2n, 3n])
        if (which !== oneProcess) expect(decide(name, upper | which, other | pid)).toBe(EPERM)
    }),
  )
})

test('a signal through a pidfd has no siginfo of its sender’s making and goes to a process, not to a thread', () => {
  expect(decide('pidfd_open', 5n, 0n)).toBe('allow')
  expect(decide('pidfd_open', 5n, 0o4000n)).toBe('allow')
  expect(decide('pidfd_open', 5n, 0o200n)).toBe(EPERM)
  expect(decide('pidfd_send_signal', 3n, 15n, 0n, 0n)).toBe('allow')
  for (const info of [1n, 1n << 32n, 0x7ffc00000000n])
    expect(decide('pidfd_send_signal', 3n, 15n, info, 0n)).toBe(EPERM)
  for (const flags of [1n, 2n, 4n]) expect(decide('pidfd_send_signal', 3n, 15n, 0n, flags)).toBe(EPERM)
})

test('only the two native architectures, without their 32-bit siblings', () => {
  expect(profile.archMap).toEqual([
    { architecture: 'SCMP_ARCH_X86_64', subArchitectures: [] },
    { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: [] },
  ])
})

test('what is called as another architecture ends the program, whatever it is', () => {
  const [x86, arm] = filters
  const anyNumber = fc.integer({ min: 0, max: 600 })
  fc.assert(
    fc.property(anyNumber, (number) => {
      for (const filter of filters)
        for (const other of [I386, ARM, RISCV]) expect(filter.as(other, number)).toBe('kill')
      expect(x86?.byNumber(X32 + number)).toBe('kill')
      // arm64 has no second table: there these are numbers that do not exist.
      expect(arm?.byNumber(X32 + number)).toBe(EPERM)
    }),
  )
})

test('a call that is newer than the profile is refused', () => {
  for (const filter of filters)
    for (const number of [600, 1_000, 0x3fff_ffff]) expect(filter.byNumber(number)).toBe(EPERM)
})

test.each('io_setup io_submit io_destroy io_getevents io_pgetevents io_cancel'.split(' '))(
  '%s does not exist: what it counts is counted for the whole host',
  (name) => expect(decide(name)).toBe(ENOSYS),
)

test('arch_prctl is a call of x86-64 only', () => {
  expect(filters.map((filter) => filter.byName('arch_prctl'))).toEqual(['allow', undefined])
  expect(profile.syscalls.find(({ names }) => names.includes('arch_prctl'))?.includes).toEqual({
    arches: ['amd64'],
  })
})

test.each(
  [
    ['io_uring_setup io_uring_enter io_uring_register'],
    ['ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise'],
    ['userfaultfd bpf perf_event_open keyctl add_key request_key'],
    ['name_to_handle_at open_by_handle_at'],
    [
      'mount umount umount2 mount_setattr move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick pivot_root statmount listmount',
    ],
    [
      'unshare setns chroot quotactl quotactl_fd fanotify_init fanotify_mark memfd_secret modify_ldt vmsplice',
    ],
    ['swapon swapoff kexec_load kexec_file_load init_module finit_module delete_module create_module acct'],
    [
      'settimeofday clock_settime clock_adjtime adjtimex stime syslog socketcall reboot iopl ioperm lookup_dcookie uselib nfsservctl',
    ],
    ['mbind migrate_pages move_pages set_mempolicy vhangup sethostname setdomainname'],
  ].flatMap(([names]) => names?.split(' ') ?? []),
)('%s is refused with EPERM, and no rule names it', (name) => {
  // Some of them are of one architecture, of none any more, or newer than the libseccomp of this
  // machine.
  expect([EPERM, undefined]).toContain(decide(name))
  expect(profile.syscalls.flatMap(({ names }) => names)).not.toContain(name)
})

test.each(
  'read write execve fork vfork futex epoll_wait openat2 rt_sigaction wait4 setpgid seccomp prctl statx getrandom rseq'.split(
    ' ',
  ),
)('%s is allowed', (name) => {
  expect(decide(name)).toBe('allow')
})

test('clone3 does not exist, so that libc falls back to clone', () => {
  expect(decide('clone3')).toBe(ENOSYS)
})

test('clone makes threads and processes, never a namespace', () => {
  expect(decide('clone', 17n)).toBe('allow')
  expect(decide('clone', 0x3d0f00n)).toBe('allow')
  for (const flag of [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n]) {
    expect(decide('clone', flag | 17n)).toBe(EPERM)
  }
})

test('personality can be asked for and be the ordinary one, whatever is above bit 31', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 0xffffffffn }), upperHalf, (value, high) => {
      expect(decide('personality', high | value)).toBe(
        value === 0n || value === 0xffffffffn ? 'allow' : EPERM,
      )
    }),
    {
      examples: [
        [0n, 0n],
        [0xffffffffn, 1n << 32n],
        [0x40000n, 0n],
      ],
    },
  )
})

describe('sockets', () => {
  test('only unix, inet, inet6 and route netlink, whatever is above bit 31', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 0xffffffffn }),
        fc.bigInt({ min: 0n, max: 30n }),
        upperHalf,
        (family, protocol, high) => {
          const good = [1n, 2n, 10n].includes(family) || (family === 16n && protocol === 0n)
          expect(decide('socket', high | family, 1n, high | protocol)).toBe(good ? 'allow' : EPERM)
        },
      ),
      {
        examples: [
          [1n, 0n, 0n],
          [2n, 6n, 0n],
          [10n, 0n, 1n << 32n],
          [16n, 0n, 0n],
          [16n, 15n, 0n],
          [38n, 0n, 0n],
          [40n, 0n, 0n],
          [17n, 3n, 0n],
        ],
      },
    )
  })

  test('pairs are unix only', () => {
    expect(decide('socketpair', 1n, 1n, 0n)).toBe('allow')
    for (const family of [2n, 16n, 30n, 38n, 40n]) expect(decide('socketpair', family)).toBe(EPERM)
  })
})

/** Terminal injection, leaving a project quota, and taking disk space without writing. */
const CLOSED_IOCTLS = [
  0x5412n,
  0x541cn,
  0x5423n,
  0x401c5820n,
  0x40086602n,
  0x40046602n,
  0x40305828n,
  0x4030582an,
  0x40305839n,
]

test('every ioctl but a closed list, as the kernel reads the request: its low 32 bits', () => {
  const request = fc.oneof(
    fc.bigInt({ min: 0n, max: 0xffffffffn }),
    ...CLOSED_IOCTLS.map((closed) => fc.bigInt({ min: closed - 16n, max: closed + 16n })),
  )
  fc.assert(
    fc.property(request, upperHalf, (low, high) => {
      expect(decide('ioctl', 0n, high | low)).toBe(CLOSED_IOCTLS.includes(low) ? EPERM : 'allow')
    }),
    {
      numRuns: 2_000,
      examples: [
        ...CLOSED_IOCTLS.map((closed): [bigint, bigint] => [closed, 0n]),
        [0x5412n, 1n << 32n],
        [0x541cn, 0xffffffffn << 32n],
        [0n, 0n],
        [0xffffffffn, 0n],
      ],
    },
  )
})

test('fallocate takes no space that was not written, whatever the upper half of its mode says', () => {
  const length = fc.bigInt({ min: 1n, max: 2n ** 40n - 1n })
  const taking = fc.constantFrom(0n, 1n, 16n, 17n)
  fc.assert(
    fc.property(upperHalf, taking, length, (upper, mode, bytes) => {
      expect(decide('fallocate', 3n, upper | mode, 0n, bytes)).toBe(EOPNOTSUPP)
    }),
  )
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 0xffffffffn }), length, (mode, bytes) => {
      fc.pre(mode !== 3n)
      expect(decide('fallocate', 3n, mode, 0n, bytes)).not.toBe('allow')
    }),
  )
  expect(decide('fallocate', 3n, 3n, 0n, 4096n)).toBe('allow')
  // Longer than a budget may be: the kernel itself says EFBIG, by the limit of a file's size.
  for (const bytes of [2n ** 40n, 2n ** 45n + 1n, 2n ** 52n])
    expect(decide('fallocate', 3n, 0n, 0n, bytes)).toBe('allow')
})

test('no call is named twice where a condition would be undone by it', () => {
  const free = profile.syscalls
    .filter((rule) => !rule.args && rule.action === 'SCMP_ACT_ALLOW')
    .flatMap((rule) => rule.names)
  expect(new Set(free).size).toBe(free.length)
  for (const rule of profile.syscalls)
    if (rule.args) for (const name of rule.names) expect(free).not.toContain(name)
})

describe('the debug profile', () => {
  test('is the ordinary one, rule by rule, and three calls more', () => {
    const count = profile.syscalls.length
    expect({ ...debug, syscalls: debug.syscalls.slice(0, count) }).toEqual(profile)
    expect(debug.syscalls.slice(count).flatMap(({ names }) => names)).toEqual([
      'ptrace',
      'process_vm_readv',
      'personality',
    ])
  })

  test('tracing and reading are open, writing into others and what else there is of the kind is not', () => {
    for (const name of ['ptrace', 'process_vm_readv']) expect(decideIn(debugFilters, name)).toBe('allow')
    for (const name of 'process_vm_writev kcmp pidfd_getfd process_madvise perf_event_open bpf userfaultfd'.split(
      ' ',
    ))
      expect(decideIn(debugFilters, name), name).toBe(EPERM)
  })

  test('personality can switch off the random addresses, and nothing else', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 0xffffffffn }), upperHalf, (value, high) => {
        expect(decideIn(debugFilters, 'personality', high | value)).toBe(
          [0n, 0x40000n, 0xffffffffn].includes(value) ? 'allow' : EPERM,
        )
      }),
      {
        examples: [
          [0x40000n, 0n],
          [0x40000n, 1n << 32n],
          [0x440000n, 0n],
          [0x8n, 0n],
        ],
      },
    )
  })
})

describe('reading the profile', () => {
  test.each([
    ['not JSON', '{'],
    ['one that allows by default', '{"defaultAction":"SCMP_ACT_ALLOW"}'],
    ['null', 'null'],
  ])('%s is refused', async (_what, text) => {
    const folder = await mkdtemp(join(tmpdir(), 'sandlot-seccomp-'))
    try {
      await writeFile(join(folder, 'profile.json'), text)
      await expect(readSeccompProfile('default', join(folder, 'profile.json'))).rejects.toMatchObject({
        code: 'invalid_arguments',
      })
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  test('a file that is not there is refused, never replaced by the default', async () => {
    await expect(readSeccompProfile('default', '/nowhere/profile.json')).rejects.toMatchObject({
      code: 'invalid_arguments',
    })
  })
})
