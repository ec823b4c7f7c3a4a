/** Class E: system calls, by number, that a kernel without our filter would answer otherwise. */
import { expect } from 'vitest'

import { all, closed, ENOSYS, EPERM, type FilterRow, onlyOnDocker, type Row, systemCalls } from './row.ts'
import { loadedProfile } from './docker-engine.ts'

/** Calls that this kernel might refuse by itself, so the profile that was loaded is read as well. */
const NEVER_ALLOWED =
  'userfaultfd fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr mount umount2 pivot_root chroot bpf io_uring_setup perf_event_open ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp setns unshare keyctl add_key request_key name_to_handle_at open_by_handle_at quotactl quotactl_fd fanotify_init memfd_secret modify_ldt vmsplice swapon kexec_load init_module finit_module acct settimeofday clock_settime syslog socketcall'

/** `clone` and `clone3` with one namespace flag each, and unshare and setns with it. */
const NAMESPACE_FLAGS = [0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]

/** The filter of some engines refuses it. */
export const UPPER_HALF_OF_PERSONALITY = 'personality: the upper half, which the kernel drops, may be set'

/** Text of the profile that the engine was given. */
export const PROFILE_TEXT = 'the profile that the container was made with allows none of these'

/** Decisions of the filter; system-calls.test.ts also checks these without a container. */
export const filterRows: FilterRow[] = [
  closed('E08', 'unshare -Urm true'),
  closed('E08', 'unshare -n true'),
  closed('E08', 'unshare -T true'),
  closed('E08', 'nsenter -t 1 -a true'),
  systemCalls('E08', 'clone, unshare and setns with every namespace flag; clone3 does not exist', {
    ...Object.fromEntries(
      NAMESPACE_FLAGS.flatMap((flag) => [
        // CLONE_NEWTIME (0x80) lies in the exit signal of clone, so clone cannot ask for it.
        ...(flag === 0x80 ? [] : [[`56,${flag + 17}`, EPERM] as const]),
        [`272,${flag}`, EPERM] as const,
        [`308,0,${flag}`, EPERM] as const,
      ]),
    ),
    ...all('435,page,88 435,0,0', ENOSYS),
  }),
  systemCalls('E10', 'io_uring', all('425,1,page 426,0 427,0', EPERM)),
  systemCalls(
    'E11',
    'userfaultfd, bpf, perf_event_open',
    all('323,1 323,0 321,0,0,0 321,5,page,128 298,0 298,page,0,-1,-1,0', EPERM),
  ),
  systemCalls(
    'E13',
    'ptrace of process 1 and of a child, memory of others, their descriptors',
    all(
      '101,16,1 101,0 101,0x4206 310,1,page,1,page 310,self,page,1,page 311,1 438,0,0 312,1,1 312,self,self 440,0',
      EPERM,
    ),
  ),
  systemCalls('E14', 'AF_ALG', all('41,38,5,0 41,38,2,0', EPERM)),
  systemCalls('E15', 'AF_VSOCK', all('41,40,1,0 41,40,2,0 53,40,1,0,page', EPERM)),
  systemCalls(
    'E15',
    'every other family: packet, key, bluetooth, CAN, TIPC, RDS, XDP, MCTP, SMC, KCM, QIPCRTR',
    {
      ...all('41,17,3,768 41,15,3,2 41,31,3,1 41,29,3,1 41,30,1,0 41,21,5,0 41,44,3,0 41,45,2,0', EPERM),
      ...all(
        '41,43,1,0 41,41,5,0 41,42,2,0 41,24,2,0 41,23,2,0 41,5,2,0 41,0,1,0 41,46,1,0 41,255,1,0',
        EPERM,
      ),
    },
  ),
  systemCalls(
    'E15',
    'netlink beyond route: audit, netfilter, crypto, generic, uevent, kobject, selinux, rdma',
    {
      ...all(
        '41,16,3,9 41,16,3,12 41,16,3,21 41,16,3,16 41,16,3,15 41,16,3,7 41,16,3,20 41,16,3,10 41,16,3,4',
        EPERM,
      ),
      '41,16,3,0': 'open',
    },
  ),
  systemCalls('E15', 'the same families with a bit above the 32nd set, which the kernel drops', {
    ...all('41,4294967334,5,0 41,4294967336,1,0 41,4294967312,3,4294967308 41,4294967313,3,768', EPERM),
    '41,4294967298,1,0': 'open',
  }),
  {
    id: 'E17',
    what: 'a 32-bit program’s system calls do not exist',
    skip: (stage) => (stage.architecture === 'x86_64' ? undefined : 'it is about x86-64'),
    async run({ me }) {
      // int 0x80 works from 64-bit code as well and takes the 32-bit table: 20 is getpid there, 102 socketcall.
      const source = `int main(void){long r;__asm__ volatile("int $0x80":"=a"(r):"a"(NUMBER),"b"(1),"c"(0):"memory","r8","r9","r10","r11");return r<0?7:8;}`
      for (const number of [20, 102, 359]) {
        const { code, signal } = await me.shell(
          `cd "$(mktemp -d)" && printf '%s' '${source.replace('NUMBER', String(number))}' > i.c && gcc -o i i.c && exec ./i`,
        )
        if (signal === undefined) expect([7, 128 + 31]).toContain(code)
        else expect(signal).toBe('SIGSYS')
      }
      await me.shell('rm -rf "${TMPDIR:-/tmp}"/tmp.*')
    },
  },
  {
    id: 'E18',
    what: 'x32 calls are closed',
    skip: (stage) => (stage.architecture === 'x86_64' ? undefined : 'it is about x86-64'),
    async run({ me }) {
      for (const number of [39, 41, 512, 520, 547]) {
        const { code, signal, output } = await me.shell(
          `exec perl -e 'print syscall(0x40000000 + ${number}) >= 0 ? "open" : 0 + $!'`,
        )
        if (signal === undefined && code === 0) expect(['1', '38']).toContain(output)
        else expect(signal).toBe('SIGSYS')
      }
    },
  },
  systemCalls(
    'E20',
    'the mount calls of the new kind',
    all(
      '430,page,0 429,-100,page,-100,page,0 428,-100,page,0 442,-100,page,0,page,32 431,0,0 432,0,0,0 433,-100,page,0',
      EPERM,
    ),
  ),
  systemCalls(
    'E20',
    'and of the newest kind: statmount, listmount, open_tree_attr',
    all('457,page,page,0,0 458,page,0,0,0 467,0,0', 'closed'),
  ),
  systemCalls(
    'E22',
    'TIOCSTI, TIOCLINUX and TIOCSETD, also with a bit above the 32nd; another request is not the filter’s',
    {
      ...all('16,0,21522 16,0,4294988818 16,0,21532 16,0,4294988828 16,0,21539 16,0,4294988835', EPERM),
      '16,0,21505': 25,
    },
  ),
  // Beyond the table.
  systemCalls(
    'X-E1',
    'keyrings',
    all('248,page,page,page,1,-3 249,page,page,0,-3 250,0,-3,1 250,1,page', EPERM),
  ),
  systemCalls('X-E2', 'fanotify, file handles, quota, lookup of cookies, secret memory', {
    ...all(
      '300,0,0 301,0,1,1,-100,page 303,-100,page,page,page,0 304,-100,page,0 179,page,page,0,page 443,0,page',
      EPERM,
    ),
    ...all('212,0,page,1 447,0', EPERM),
  }),
  systemCalls(
    'X-E3',
    'modules, kexec, memory policies and page moves, modify_ldt, vmsplice, fault injection',
    {
      ...all(
        '175,page,1,page 313,0,page,0 176,page,0 246,0,0,0,0 320,0,0,0,page,0 154,1,page,16 278,1,page,1,0',
        EPERM,
      ),
      ...all('237,0,4096,0 256,1,0 279,1,0 238,0', EPERM),
    },
  ),
  systemCalls('X-E4', 'personality: only the ordinary one', {
    ...all('135,4294967295 135,0', 'open'),
    ...all('135,262144 135,8 135,4194304', EPERM),
  }),
  {
    ...systemCalls('X-E4', UPPER_HALF_OF_PERSONALITY, { '135,4294967296': 'open' }),
    skip: (place) =>
      place.architecture === 'x86_64'
        ? onlyOnDocker('the filter of the runtime refuses it')(place)
        : 'the numbers are those of x86-64',
  },
  systemCalls(
    'X-E8',
    'kernel AIO, whose requests all programs of the host share',
    all('206,1,page 207,0 208,0,0,1,page 209,0,1,page 210,0,page,page 333,0,0,1,page', ENOSYS),
  ),
]

export const rows: Row[] = [
  ...filterRows,
  {
    id: 'E22',
    what: 'TIOCSTI on its own terminal',
    async run({ me }) {
      const { output } = await me.shell(
        `script -qec "perl -e 'my \\$c = q(x); ioctl(STDIN, 0x5412, \\$c) or print 0 + \\$!'" /dev/null`,
      )
      expect(output.trim()).toBe('1')
    },
  },
  {
    id: 'E20',
    what: PROFILE_TEXT,
    async run(stage) {
      const profile = JSON.stringify(await loadedProfile((await stage.sandbox()).id))
      for (const name of NEVER_ALLOWED.split(' ')) expect(profile).not.toContain(`"${name}"`)
      expect(profile).toContain('"defaultAction":"SCMP_ACT_ERRNO"')
    },
    skip: onlyOnDocker('a Pod has the filter of its runtime, and sbxd loads ours'),
  },
]
