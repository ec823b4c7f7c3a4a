/** Class I: what can be learnt from inside. */
import { expect } from 'vitest'

import { docker, shell } from '../../packages/sandbox/test/support/docker-fixture.ts'
import { campaign } from '../campaign.ts'
import { closed, onlyOnDocker, prints, type Row } from './row.ts'
import type { Stage } from './stage.ts'

const HIDDEN =
  '/proc/kallsyms /proc/modules /proc/config.gz /proc/interrupts /proc/timer_list /proc/keys /proc/kcore /proc/sched_debug /proc/latency_stats /proc/kpagecount'
const HIDDEN_FOLDERS =
  '/proc/scsi /proc/acpi /proc/asound /sys/firmware /sys/class/dmi /sys/devices/virtual/dmi /sys/devices/virtual/powercap /sys/kernel/debug /sys/kernel/tracing'

const FEWER_MASKED = 'a Pod has the masks of its runtime, which are fewer; the backend warns of it'

/** Looks for these words in the environment, in every readable file, in what processes show, and in sockets' names. */
export const SEARCH = String.raw`
import os, sys
needles = [bytes.fromhex(h) for h in sys.argv[1].split(',')]
hits, seen = [], 0
def look(path):
  global seen
  try:
    if not os.path.isfile(path): return
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
  except OSError: return
  try:
    rest, total = b'', 0
    while total < 256 << 20:
      data = os.read(fd, 1 << 20)
      if not data: break
      total += len(data)
      text = rest + data
      for needle in needles:
        if needle in text: hits.append(path)
      rest = text[-128:]
    seen += 1
  except OSError: pass
  finally: os.close(fd)
own = '/proc/%d' % os.getpid()
skip = ('/sys', '/proc/kcore', '/proc/kmsg', own, '/proc/self', '/proc/thread-self', '/proc/%d' % os.getppid())
for top in sys.argv[2:]:
  for folder, names, files in os.walk(top):
    if folder.startswith(skip): names.clear(); continue
    for name in files:
      path = os.path.join(folder, name)
      if not path.startswith(skip): look(path)
for key, value in os.environ.items():
  for needle in needles:
    if needle in os.fsencode(key + value): hits.append('environment ' + key)
print(seen, *hits, sep='\n')
`

/** The secrets of this controller: the key of the deployment, those of both sandboxes, and canaries in its own environment. */
async function search(
  stage: Stage,
  needles: Uint8Array[],
  tops: string[],
): Promise<{ files: number; hits: string[] }> {
  const box = await stage.sandbox()
  await box.files.write('search.py', Buffer.from(SEARCH))
  const hex = needles.map((needle) => Buffer.from(needle).toString('hex')).join(',')
  // In its own argument the words are in hexadecimal, so it does not find itself.
  const { output } = await shell(box, `python3 search.py ${hex} ${tops.join(' ')}; rm search.py`)
  const [files, ...hits] = output.trim().split('\n')
  return { files: Number(files), hits }
}

export const rows: Row[] = [
  {
    ...prints(
      'I01',
      'files that tell about the host’s kernel are empty or closed',
      `cat ${HIDDEN} 2>/dev/null | head -c 100 | wc -c`,
      '0',
    ),
    skip: onlyOnDocker(FEWER_MASKED),
  },
  {
    ...prints(
      'I01',
      'and so are the folders',
      `ls -A ${HIDDEN_FOLDERS} 2>/dev/null | grep -v -e ':$' -e '^$' | wc -l`,
      '0',
    ),
    skip: onlyOnDocker(FEWER_MASKED),
  },
  prints(
    'I01',
    'and those that every runtime closes',
    `cat /proc/keys /proc/timer_list /proc/kcore /proc/sched_debug 2>/dev/null | head -c 100 | wc -c; ls -A /proc/scsi /proc/acpi /proc/asound /sys/firmware 2>/dev/null | grep -v -e ':$' -e '^$' | wc -l; grep -v '^0* ' /proc/kallsyms 2>/dev/null | wc -l`,
    '0\n0\n0',
  ),
  closed('I01', 'cat /proc/kmsg', /denied|not permitted/),
  {
    id: 'I02',
    what: 'host totals are visible under runc (documented), and only those of this container’s processes',
    async run({ me }) {
      const { output } = await me.shell('grep -c processor /proc/cpuinfo; ls -d /proc/[0-9]* | wc -l')
      const [cpus, processes] = output.trim().split('\n').map(Number)
      expect(cpus).toBeGreaterThan(0)
      expect(processes).toBeLessThan(16)
    },
  },
  {
    id: 'I04',
    what: 'no user’s name and no token in the paths of mounts and cgroups, host name, and process titles',
    async run({ me, fixture }) {
      const { output } = await me.shell(
        'cat /proc/self/mountinfo /proc/self/cgroup /proc/mounts /etc/hostname /etc/hosts; hostname; cat /proc/1/cmdline',
      )
      for (const word of ['attacker', 'neighbour', Buffer.from(fixture.deploymentKey).toString('hex')])
        expect(output).not.toContain(word)
    },
  },
  {
    id: 'I06',
    what: 'a new sandbox has an empty /tmp, /dev/shm, /run and workspace, its own volume and uid',
    async run({ me, other, fixture }) {
      await me.shell('echo mine | tee /tmp/left /dev/shm/left /run/left /workspace/left >/dev/null')
      const fresh = other('fresh')
      expect((await fresh.shell('find /tmp /dev/shm /run /workspace -mindepth 1 | wc -l')).output).toBe('0\n')
      const [mine, theirs] = [await fixture.ledger.find('attacker'), await fixture.ledger.find('fresh')]
      expect(mine?.uid).not.toBe(theirs?.uid)
      expect(mine?.volume).not.toBe(theirs?.volume)
      await me.shell('rm /tmp/left /dev/shm/left /run/left /workspace/left')
    },
  },
  prints(
    'I08',
    'pages are not merged between sandboxes',
    'cat /sys/kernel/mm/ksm/run 2>/dev/null || echo 0',
    '0',
  ),
  {
    id: 'I09',
    what: 'no secret of the controller is in the environment, in any readable file or in /proc',
    async run(stage) {
      const { fixture } = stage
      const key = Buffer.from(fixture.deploymentKey)
      const needles = [
        key,
        key.toString('hex'),
        key.toString('base64'),
        CANARIES.environment,
        CANARIES.modelKey,
      ].map((needle) => Buffer.from(needle))
      const tops = campaign.full ? ['/'] : ['/etc', '/workspace', '/tmp', '/run', '/dev/shm', '/proc', '/var']
      const { files, hits } = await search(stage, needles, tops)
      expect(hits).toEqual([])
      expect(files).toBeGreaterThan(100)
    },
  },
  {
    id: 'I09',
    what: 'the search finds what is there: a canary of the user’s own, in a file, an environment and a process',
    async run(stage) {
      const box = await stage.sandbox()
      await box.files.write('own.txt', Buffer.from(`x${CANARIES.own}x`))
      const { hits } = await search(stage, [Buffer.from(CANARIES.own)], ['/workspace'])
      expect(hits).toEqual(['/workspace/own.txt'])
      await box.files.remove('own.txt')
    },
  },
  {
    id: 'I09',
    what: 'no socket but the supervisor’s unnamed ones is reachable',
    async run({ me }) {
      const { output } = await me.shell(
        `tail -q -n +2 /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 | grep -v ' 0100007F:' | wc -l; tail -n +2 /proc/net/unix | awk '$8 != "" && $8 != "@sandlot-sbxd"' | wc -l; find / -xdev -type s 2>/dev/null | wc -l; find /workspace /tmp /run /dev -type s 2>/dev/null | wc -l`,
      )
      expect(output.trim().split('\n')).toEqual(['0', '0', '0', '0'])
    },
  },
  prints(
    'I09',
    'the environment is the fixed list',
    "env | cut -d= -f1 | grep -v -x -E 'PATH|HOME|SHELL|LANG|TERM|TZ|SANDBOX|PWD|SHLVL|_|OLDPWD|USER|HOSTNAME|LOGNAME|EDITOR|VISUAL|GIT_EDITOR|GIT_SEQUENCE_EDITOR' | wc -l",
    '0',
  ),
  {
    id: 'I10',
    what: 'what the engine says of a container has no secret and no user’s name',
    async run({ sandbox, fixture, engine }) {
      const all = await engine.describe((await sandbox()).id)
      const key = Buffer.from(fixture.deploymentKey)
      for (const word of [
        'attacker',
        'neighbour',
        key.toString('hex'),
        key.toString('base64'),
        ...Object.values(CANARIES),
      ])
        expect(all).not.toContain(word)
    },
  },
  {
    id: 'I11',
    what: 'no secret in the image’s history, settings or layers',
    async run({ sandbox, me }) {
      const image = await docker('inspect', '--format', '{{.Image}}', (await sandbox()).id)
      const told = `${await docker('history', '--no-trunc', '--format', '{{.CreatedBy}}', image)}\n${await docker('image', 'inspect', '--format', '{{json .Config}}', image)}`
      expect(told).not.toMatch(/(password|passwd|token|secret|api[_-]?key)\s*=\s*[^\s$"']{6,}/i)
      expect(told).not.toMatch(/:\/\/[^/\s:]+:[^@/\s]+@/)
      const { output } = await me.shell(
        `find / -xdev \\( -name '.npmrc' -o -name '.netrc' -o -name 'auth.json' -o -name 'credentials' -o -name 'id_rsa' -o -name '*.pem' -path '*private*' -o -name 'auth.conf*' -path '/etc/apt/*' \\) -type f 2>/dev/null | grep -v node_modules | xargs -r grep -l -i -E '_auth|password|PRIVATE KEY' 2>/dev/null; ls /etc/apt/auth.conf.d 2>/dev/null | wc -l`,
      )
      expect(output.trim()).toMatch(/^0?$/)
    },
    skip: onlyOnDocker('the image of Pods is Docker’s, which is searched there'),
  },
  {
    id: 'I12',
    what: 'asked for the key of the model through a tool, there is none to print',
    async run({ me }) {
      const { output } = await me.shell(
        'env; set; cat /proc/*/environ 2>/dev/null; echo "$OPENAI_API_KEY$ANTHROPIC_API_KEY$SANDLOT_DATA$DOCKER_HOST"; cat ~/.config/* ~/.* 2>/dev/null',
      )
      for (const canary of [CANARIES.environment, CANARIES.modelKey]) expect(output).not.toContain(canary)
      expect(output).not.toMatch(/OPENAI_API_KEY=.|SANDLOT_\w+=./)
    },
  },
]

/** Put into this process, which is the controller of these rows, before its first sandbox is made: see the suite. */
export const CANARIES = {
  environment: `canary-environment-${crypto.randomUUID()}`,
  modelKey: `sk-canary-${crypto.randomUUID()}`,
  own: `canary-own-${crypto.randomUUID()}`,
}
