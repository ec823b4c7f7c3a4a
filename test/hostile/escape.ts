/** Class E: out of the container, or to more rights inside it. */
import { expect } from 'vitest'

import { all, closed, EPERM, prints, type Row, systemCalls } from './row.ts'
import { rows as calls } from './system-calls.ts'

/** Devices of every engine. */
const DEVICES = 'fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero'

/** Puts every line of /proc/mounts that is not the container's own on the screen. */
const FORBIDDEN_WRITES = [
  '/proc/sys/kernel/core_pattern',
  '/proc/sys/kernel/modprobe',
  '/proc/sys/kernel/hostname',
  '/proc/sys/vm/drop_caches',
  '/proc/sys/fs/binfmt_misc/register',
  '/proc/sysrq-trigger',
  '/proc/fs/jbd2/x',
  '/proc/irq/default_smp_affinity',
  '/proc/1/oom_score_adj',
  '/proc/1/coredump_filter',
  '/proc/1/clear_refs',
  '/proc/1/comm',
  '/proc/1/timerslack_ns',
  '/proc/1/setgroups',
  '/proc/1/uid_map',
  '/proc/self/uid_map',
  '/sys/kernel/uevent_helper',
  '/sys/kernel/mm/ksm/run',
  '/sys/power/state',
  '/sys/module/kernel/parameters/panic',
  '/sys/devices/system/cpu/cpu1/online',
]

export const rows: Row[] = [
  ...calls,
  prints(
    'E01',
    'no capability in any set',
    "grep Cap /proc/self/status | tr -d '\\t' | tr '\\n' ' '",
    ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'].map((set) => `${set}:0000000000000000`).join(' '),
  ),
  closed('E02', 'mount -t tmpfs x /mnt'),
  closed('E02', 'mount -o remount,rw /'),
  closed('E02', 'mount --bind /tmp /mnt'),
  closed('E02', 'umount /proc/kcore || umount -l /proc/acpi'),
  systemCalls(
    'E02',
    'mount and umount by number',
    all('165,page,page,page,4096 165,0,0,0,32 166,page,2', EPERM),
  ),
  closed('E03', 'mknod /tmp/d b 8 0'),
  closed('E03', 'mknod /workspace/d c 1 1'),
  systemCalls('E03', 'mknod of a block and a character device by number', {
    '133,/tmp/d,24576,2048': EPERM,
    '259,-100,/tmp/d,8192,257': EPERM,
  }),
  closed('E04', 'chroot / true'),
  systemCalls('E04', 'chroot and pivot_root by number', all('155,page,page 161,page', EPERM)),
  closed('E06', 'date -s @0'),
  closed('E06', 'dmesg'),
  systemCalls('E06', 'clock, reboot, swap, syslog, acct, host name, ports of the machine', {
    ...all('164,page 227,0,page 305,0,page 159,page 169,4276215469,672274793,0 168,page 167,page', EPERM),
    ...all('103,3,page,4096 163,page 170,page,1 171,page,1 172,3 173,0,1,1 153', EPERM),
  }),
  prints(
    'E07',
    'no set-uid file, no set-gid file, no file with capabilities',
    "find / -xdev ! -type d -perm /6000 2>/dev/null; getcap -r /usr 2>/dev/null; grep -c '^NoNewPrivs:.1' /proc/self/status",
    '1',
  ),
  closed('E07', 'echo | su -c id', /System error|Authentication|not found|denied|failure|permitted/i),
  {
    id: 'E07',
    what: 'a set-uid bit that the user sets, and changing to another uid, gain nothing',
    async run({ me }) {
      const { output } = await me.shell(
        `cp /usr/bin/id /workspace/id && chmod 6755 /workspace/id && /workspace/id -u; perl -e '$> = 0; $< = 0; print "$< $>\\n"; my ($zero, $groups) = (0, pack("i", 0)); print syscall(105, $zero), " ", syscall(117, $zero, $zero, $zero), " ", syscall(116, 1 + $zero, $groups), "\\n"'; rm /workspace/id; id -u`,
      )
      const [first, second, third, last] = output.trim().split('\n')
      expect(first).toBe(last)
      expect(second).toBe(`${last} ${last}`)
      expect(third).toBe('-1 -1 -1')
      expect(Number(last)).toBeGreaterThanOrEqual(30_000)
    },
  },
  {
    id: 'E09',
    what: 'only the harmless devices, and none of the others by name',
    async run({ me }) {
      const { output } = await me.shell('ls -I core /dev | tr "\\n" " "; ls /dev/pts | grep -v ptmx')
      expect(output.trim()).toBe(DEVICES)
    },
  },
  ...[
    'kmsg',
    'mem',
    'port',
    'kvm',
    'fuse',
    'vhost-vsock',
    'net/tun',
    'sda',
    'loop-control',
    'uinput',
    'console',
  ].map((device) => closed('E09', `head -c1 /dev/${device}`)),
  {
    id: 'E24',
    what: 'the page cache of /bin/ls is the same for everybody after splice and vmsplice tricks',
    async run({ me, neighbour }) {
      const sum = 'sha256sum /bin/ls /bin/bash'
      const before = (await neighbour.shell(sum)).output
      // Splice a page of the file into a pipe and try to write over it there; AF_ALG and vmsplice are closed.
      await me.shell(
        `perl -e 'pipe(R, W); open(F, "<", "/bin/ls"); syscall(275, fileno(F), 0, fileno(W), 0, 1, 0); syswrite(W, "x" x 100); syscall(278, fileno(W), pack("QQ", 0, 1), 1, 0); syscall(276, fileno(R), fileno(W), 10, 0)'`,
      )
      expect((await neighbour.shell(sum)).output).toBe(before)
      expect((await me.shell(sum)).output).toBe(before)
    },
  },
  closed(
    'E25',
    'for f in /sys/fs/cgroup/*/release_agent /sys/fs/cgroup/release_agent; do echo /tmp/x > $f; done',
  ),
  closed('E25', 'mkdir /tmp/cg; mount -t cgroup -o memory cgroup /tmp/cg; s=$?; rmdir /tmp/cg; exit $s'),
  closed('E25', 'echo 1 > /sys/fs/cgroup/cgroup.procs || echo 1 > /sys/fs/cgroup/pids/cgroup.procs'),
  closed(
    'E25',
    'echo max > /sys/fs/cgroup/memory.max || echo -1 > /sys/fs/cgroup/memory/memory.limit_in_bytes',
  ),
  closed('E25', 'mkdir /sys/fs/cgroup/x || mkdir /sys/fs/cgroup/pids/x'),
  ...FORBIDDEN_WRITES.map((path) => closed('E26', `echo 1 > ${path}`)),
  {
    id: 'E27',
    what: 'a command has three descriptors; none leads to the host, and those of process 1 cannot be read',
    async run({ me }) {
      const { output } = await me.shell(
        'ls /proc/self/fd | tr "\\n" " "; for f in 0 1 2; do readlink /proc/self/fd/$f; done; ls -l /proc/1/fd; readlink /proc/1/cwd /proc/1/root /proc/1/exe',
      )
      const [numbers, ...links] = output.split('\n')
      // 3 is the folder that ls itself reads.
      expect(numbers).toMatch(/^0 1 2 3 /)
      expect(output).toMatch(/Permission denied/)
      expect(links.join('\n')).not.toMatch(/overlay|\/var\/lib/)
    },
  },
  closed('E27', 'cd /proc/self/fd/7/../../../..'),
  closed('E27', 'ls /proc/1/task/1/fd /proc/1/map_files'),
  closed('E27', 'cd /proc/1/cwd || cd /proc/1/root'),
  closed('E29', 'cp /bin/true /proc/1/exe'),
  closed('E29', 'cp /bin/true /usr/bin/sbxd'),
  closed('E29', 'ln -f /usr/bin/sbxd /tmp/s || mv /usr/bin/sbxd /tmp/'),
  {
    id: 'E29',
    what: 'not through the shim’s own /proc/self/exe either',
    async run({ me }) {
      const { output } = await me.shell(
        'cp /bin/true /proc/$PPID/exe; cat /proc/$PPID/comm; readlink /proc/$PPID/exe',
      )
      expect(output).toMatch(/denied|busy|Read-only/i)
      expect(output).toContain('sbxd\n')
    },
  },
  {
    id: 'E30',
    what: 'a crash leaves no core, and the limit of cores stays at 1, where the kernel starts no handler of the host',
    async run({ me }) {
      const { signal } = await me.shell(
        'ulimit -s unlimited 2>/dev/null; ulimit -c unlimited 2>/dev/null; exec perl -e "kill SEGV => \\$\\$"',
      )
      expect(signal).toBe('SIGSEGV')
      // To raise it would make cores; to lower it would start the handler of a core_pattern that is a pipe. 160 is setrlimit,
      // 302 prlimit64; both say yes, and with a place for the old limit prlimit64 says EPERM.
      const { output } = await me.shell(
        `perl -e 'for my $to (1 << 30, 0) {
          my ($core, $limit, $was) = (4, pack("QQ", $to, $to), "x" x 16);
          print syscall(160, $core, $limit), syscall(302, 0, $core, $limit, 0);
          print syscall(302, 0, $core, $limit, $was) < 0 ? 0 + $! : "set", "\n" }
          exec "grep", "Max core", "/proc/self/limits"'; find /workspace /tmp /run /dev/shm -name 'core*'`,
      )
      expect(output.trim().replaceAll(/ +/g, ' ')).toBe('001\n001\nMax core file size 1 1 bytes')
    },
    skip: (stage) => (stage.architecture === 'x86_64' ? undefined : 'the numbers are those of x86-64'),
  },
  {
    id: 'X-E5',
    what: 'a memfd can be executed (it is only a file) and has no more rights than its owner',
    async run({ me }) {
      const { output } = await me.shell(
        `perl -e 'my $fd = syscall(319, my $n = "x", 0); open(my $o, ">&=", $fd); binmode $o; open(my $i, "<", "/usr/bin/id"); local $/; my $all = <$i>; syswrite($o, $all); exec "/proc/$$/fd/$fd", "-u"'; id -u`,
      )
      const [first, second] = output.trim().split('\n')
      expect(first).toBe(second)
    },
  },
  {
    id: 'X-E6',
    what: 'a seccomp listener of one’s own sees only one’s own children, and cannot loosen the filter',
    async run({ me }) {
      // SECCOMP_SET_MODE_FILTER with "allow everything": the older filter still counts.
      const { output } = await me.shell(
        `perl -e 'my $f = pack("SCCL", 6, 0, 0, 0x7fff0000); my $p = pack("SxxxxxxQ", 1, unpack("Q", pack("p", $f))); print syscall(317, 1, 0, $p), " "; $! = 0; print syscall(425, 1, 0), " ", 0 + $!'`,
      )
      expect(output).toBe('0 -1 1')
    },
  },
  {
    id: 'X-E7',
    what: 'being dumpable is one’s own business; no_new_privs and the bounding set cannot be undone',
    async run({ me }) {
      const { output } = await me.shell(
        `perl -e 'print join " ", map { $! = 0; syscall(157, @$_, 0, 0, 0) < 0 ? 0 + $! : "ok" } [4, 1], [4, 2], [38, 0], [24, 21], [28, 0], [47, 2, 21], [8, 1]'; grep -c "NoNewPrivs:.1" /proc/self/status`,
      )
      // Dumpable yes, 2 never; no_new_privs only ever 1; no capability to drop, keep or raise; no secure bits.
      expect(output).toMatch(/^ok 22 22 1 (1|ok) 1 (ok|1)1\n$/)
    },
  },
]
