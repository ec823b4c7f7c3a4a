/** The failure-injection matrix: what is injected, and where that is tested, or why it is not. */

export interface Row {
  id: string
  /** The injected failure. */
  inject: string
  /** While what. */
  during: string
  expected: string
  /** File below `packages/` → words of the titles of its tests. */
  tests: Record<string, string[]>
  /** Words that identify one of its tests, as they are in the code. */
  cases?: string[]
  /** Untested part of the row, and the reason. */
  not?: string
}

const here = 'sandbox/test/failures'

export const matrix: Row[] = [
  {
    id: 'controller-killed',
    inject: 'SIGKILL of the controller',
    during: 'idle, running, streaming 100 MB, between START and its answer, writing a file, any instant',
    expected: 'taken over within 2 s for 200 sandboxes, checksum equal, at most once',
    tests: {
      [`${here}/controller-killed.engine.test.ts`]: [],
      [`${here}/kubernetes/controller-killed.cluster.test.ts`]: [],
      [`${here}/controller-killed.ts`]: [
        'idle: another finds',
        'running: the command goes on',
        'streaming: not a byte',
        'between START and its answer',
        'writing a file',
        'at any instant of its life',
        'many sandboxes are taken over',
      ],
    },
  },
  {
    id: 'connection-broken',
    inject: 'SIGKILL of the gate, a socket reset, a connection that goes silent',
    during: 'streaming, idle',
    expected: 'noticed within 5 s, connected again, nothing twice',
    tests: {
      [`${here}/silent-connection.engine.test.ts`]: [
        'cut: the command',
        'silent but never closed',
        'silent while idle',
      ],
      'sandbox/test/sbxd/heartbeat.test.ts': ['silence is given up once', 'standing still'],
      'engine-gate/test/gate.engine.test.ts': ['a gate that is killed while a command streams'],
    },
    not: 'Silence is made by a proxy on a Unix socket, not by dropping packets: the engine then holds every stream of that container up after a megabyte, until its kernel gives the silent one up, and no call of its API can hurry that.',
  },
  {
    id: 'dockerd-killed',
    inject: 'SIGKILL of dockerd, live-restore on and off; an orderly restart',
    during: 'running, creating, pausing, stopping',
    expected: 'on: goes on; off: interrupted, files kept, made again',
    tests: {
      [`${here}/engine.engine.test.ts`]: [
        'running: the command goes on',
        '%s: a typed error or none',
        'ms into a stop',
        '%s: commands are interrupted',
        'killed while %s',
      ],
    },
  },
  {
    id: 'shim-killed',
    inject: 'SIGKILL of the containerd shim of one sandbox',
    during: 'running',
    expected: 'that sandbox only: sandbox_lost, made again',
    tests: { [`${here}/operator.engine.test.ts`]: ['SIGKILL of $who'] },
    cases: ["who: 'the containerd shim'"],
  },
  {
    id: 'operator',
    inject: 'docker kill, docker rm -f, docker pause behind our back',
    during: 'running, running a command, paused, stopped',
    expected: 'a typed error to who waits, then healed',
    tests: {
      [`${here}/operator.engine.test.ts`]: [
        'docker $action while $state',
        'docker $action while somebody waits',
      ],
    },
  },
  {
    id: 'volume-removed',
    inject: 'docker volume rm behind our back, at any step of a first start a crash',
    during: 'stopped, from the pool, after a lost ledger, acquire',
    expected: 'workspace_missing with its name, nothing made; who never had one gets one',
    tests: {
      'sandbox/test/controller/missing-workspace.engine.test.ts': ['is missing until it is restored'],
      'sandbox/test/controller/missing-workspace.test.ts': [
        'of a sandbox %s: every use',
        'a stopped container is not started without its volume',
        'a lost ledger hides no missing one',
        '%s it leaves a person',
      ],
    },
  },
  {
    id: 'init-killed',
    inject: 'SIGKILL of PID 1 from the host',
    during: 'running, writing a file',
    expected: 'the same; the file is the old or the new one whole',
    tests: {
      [`${here}/operator.engine.test.ts`]: ['SIGKILL of $who'],
      'sandbox/test/sbxd/killed-writing.test.ts': ['with half of it there', 'at any instant'],
    },
    cases: ["who: 'PID 1'"],
  },
  {
    id: 'disk-full',
    inject: 'no space on the engine’s data root; on the ledger’s disk',
    during: 'create, run',
    expected: 'a typed error, well again when there is space',
    tests: {
      [`${here}/engine.engine.test.ts`]: ['its disk is full'],
      [`${here}/ledger-disk.engine.test.ts`]: ['who has a sandbox keeps it'],
    },
  },
  {
    id: 'disk-hangs',
    inject:
      'the disk below one workspace hangs: a process that writes to it is held by the kernel, also when killed',
    during: 'a command writing, a session to be kept, stop',
    expected: 'the stop ends while the disk still hangs, no other user waits, all is back with the disk',
    tests: { [`${here}/hanging-disk.engine.test.ts`]: ['a stop has an end'] },
    not: 'A disk that hangs for reading as well, and one below the engine’s data root: then the engine hangs too, as in the row of the one that is frozen.',
  },
  {
    id: 'clock-jump',
    inject: 'the wall clock jumps an hour on or back',
    during: 'timeouts running',
    expected: 'nothing notices',
    tests: { [`${here}/clock.test.ts`]: ['inside: a timeout', 'in the controller, by %i ms'] },
  },
  {
    id: 'engine-frozen',
    inject: 'SIGSTOP of dockerd, seconds in an ordinary run, 25 s in a full one',
    during: 'everything',
    expected:
      'calls fail at once, the line is bounded, the state is known, the page shows it, well again after',
    tests: {
      [`${here}/engine.engine.test.ts`]: ['frozen: every call'],
      'sandbox/test/backends/circuit-breaker.test.ts': [
        'an engine that hangs',
        'the line is bounded',
        'never more at once',
      ],
      '../test/e2e/without-engine.e2e.test.ts': ['the chat says so, the model gets a result, nothing hangs'],
    },
  },
  {
    id: 'two-controllers',
    inject: 'two controllers started by mistake',
    during: 'any',
    expected: 'each sandbox obeys exactly one',
    tests: {
      [`${here}/crowd.engine.test.ts`]: ['two controllers by mistake', 'two controllers that make'],
      'sandbox/test/controller/acquire.test.ts': ['two controllers that make'],
      'sandbox/test/controller/lifecycle.test.ts': ['two controllers never share'],
    },
  },
  {
    id: 'crash-points',
    inject: 'a crash between an engine call and its note in the ledger, or the reverse',
    during: 'acquire, claim, remove, at each step',
    expected: 'no leak, no second volume',
    tests: { 'sandbox/test/controller/lifecycle.test.ts': ['at any step loses nothing of a user'] },
  },
  {
    id: 'image-or-name',
    inject: 'the image is missing, a wrong digest, the name is taken twice',
    during: 'acquire',
    expected: 'a typed error; another name',
    tests: { [`${here}/operator.engine.test.ts`]: ['the image %s is not there', 'is taken twice'] },
  },
  {
    id: 'crowd',
    inject: '100 acquires of one user; 200 users at once (6 in an ordinary run)',
    during: 'acquire',
    expected: 'one container each',
    tests: { [`${here}/crowd.engine.test.ts`]: ['many users at once'] },
  },
  {
    id: 'reboot',
    inject: 'loss of power: everything ends, runtime state is gone, the data root stays',
    during: 'running',
    expected: 'files kept, the ledger and the engine agree',
    tests: { [`${here}/engine.engine.test.ts`]: ['%s: commands are interrupted'] },
    cases: ["'loss of power'"],
  },
  {
    id: 'other-runtimes',
    inject: 'crun, runsc, a userns-remap engine, cgroup v2, rootless, Podman',
    during: 'the contract suite',
    expected: 'it passes, or a skip says why',
    tests: {
      'sandbox/test/backends/docker/runtimes.engine.test.ts': ['on ${each.name}', 'the setting chooses it'],
      'sandbox/test/backends/docker/connection.test.ts': ['an engine that enforces no limits'],
    },
    cases: ["name: 'crun'", "name: 'userns-remap'", "name: 'runsc'"],
    not: 'cgroup v2 is a matter of the host: the whole suite runs on whatever it has. A rootless engine on cgroup v1 enforces no limits at all and says so, hence no sandbox is made on it; on cgroup v2 it would need a user with its own systemd session, which a test cannot make. Podman’s socket (4.3) takes a system call filter only as the path of a file on its host, so it cannot be given ours, and says so. Debian’s runsc of 2022 skips single tests, each with its reason there: it has no subreapers, and no limits with --ignore-cgroups.',
  },
  {
    id: 'cluster-parts',
    inject:
      'a cluster’s API server, etcd, runtime or kubelet killed; its API server silent; a node cut for seconds',
    during: 'printing, between START and its answer',
    expected: 'not a byte lost or twice, no command twice, no relay left, all streams back within seconds',
    tests: {
      [`${here}/kubernetes/parts.cluster.test.ts`]: ['no byte is lost', 'the streams of all are back'],
    },
  },
  {
    id: 'cluster-pod-ends',
    inject: 'a Pod deleted, evicted, preempted, without memory; its claim deleted; its node lost',
    during: 'printing, stopped',
    expected: 'the reason in words, files kept, never an empty home, never a second Pod on it',
    tests: {
      [`${here}/kubernetes/ends.cluster.test.ts`]: [
        'the command fails with the reason',
        'never an empty home',
        'no second Pod',
        'all of a sandbox ends',
      ],
    },
  },
  {
    id: 'cluster-agents',
    inject:
      'an agent on a cluster killed, frozen, upgraded; its API server answers 429, 410, 500, 403, is silent, cut off or a minute late',
    during: 'printing, between START and its answer',
    expected: 'no event lost, no command twice, a reason for each prompt, one relay left',
    tests: {
      '../test/replicas/replicas.cluster.test.ts': [],
      '../test/replicas/cluster-rows.ts': [],
    },
    cases: [
      'an agent in a claim',
      'an agent in a handover',
      'an agent that drains',
      'an agent in the start of a sandbox',
      'an agent whose API server answers',
      'the API server, silent for all agents',
      'cut off from the API server for longer than its lease',
      'then resumes as owner',
      'while the watches of the other lag a minute',
      'replaced by ones of another sandbox image',
    ],
  },
  {
    id: 'cluster-refuses',
    inject: 'a quota, an image, room, a volume or a token that a cluster does not give; Pods of other makers',
    during: 'acquire, claim',
    expected: 'in words; what was begun is undone',
    tests: {
      [`${here}/kubernetes/refusals.cluster.test.ts`]: [
        'a quota',
        'an image',
        'without room',
        'a class of volumes',
        'finished by the next open',
        'never used',
        'a new token',
      ],
    },
  },
  {
    id: 'cluster-hostile',
    inject:
      'a command that kills its relays or takes every watch of epoll; a webhook that changes Pods; ten people who print without end; a network that cuts what is idle',
    during: 'a command, acquire, idle',
    expected:
      'five relays, then words; nothing of what was added runs; each and all below their limits; a stream stays',
    tests: {
      [`${here}/kubernetes/relay.cluster.test.ts`]: ['killed in a loop', 'all watches of epoll'],
      [`${here}/kubernetes/webhook.cluster.test.ts`]: [
        'the Pod is deleted',
        'another image when the Pod is released',
        'refused before it is stored',
      ],
      [`${here}/kubernetes/network.cluster.test.ts`]: ['ten people print', 'cuts what is idle'],
    },
  },
]
