/**
 * sbxd as in a Pod: it listens, and each stream is one more `sbxd relay` that the runtime starts
 * inside. `docker exec` does here what the container runtime of a node does there.
 */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex, PassThrough } from 'node:stream'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { campaign, randomFrom } from '../../../../test/campaign.ts'
import { connectSandbox, type ConnectedSandbox } from '../../src/sbxd/client.ts'
import { RESYNC_BYTES } from '../../src/sbxd/protocol/frames.ts'
import { newId, sh } from '../contract/harness.ts'
import { buildUnpinnedSbxd } from '../support/build-sbxd.ts'
import { testConfig } from '../support/config.ts'
import { docker } from '../support/docker-fixture.ts'

const UID = 34_567
const key = randomBytes(32)
const started: string[] = []
let container: string

beforeAll(async () => {
  container = await runListening()
})
afterAll(async () => {
  await docker('rm', '--force', ...started)
})

async function runListening(more = ''): Promise<string> {
  const options = `--user ${UID}:${UID} --network none --read-only --cap-drop ALL --security-opt no-new-privileges`
  const folders = ['/workspace', '/tmp', '/run'].map((path) => `--tmpfs ${path}:exec,mode=1777`).join(' ')
  const id = await engine(`run --detach ${options} ${folders}${more} ${testConfig.image} --listen`)
  started.push(id)
  return id
}

const engine = (words: string, ...more: string[]): Promise<string> => docker(...words.split(' '), ...more)

/** A stream as the node's runtime gives it. Destroyed, it leaves its relay without a stdin. */
function relay(within = container): Duplex {
  const command = ['exec', '-i', within, '/usr/lib/sandlot/sbxd', 'relay']
  const child = spawn('docker', command, { stdio: ['pipe', 'pipe', 'ignore'] })
  const stream = Duplex.from({ readable: child.stdout, writable: child.stdin })
  return stream.on('close', () => child.kill('SIGKILL')).on('error', () => {})
}

async function connect(
  change: Partial<Parameters<typeof connectSandbox>[0]> = {},
): Promise<ConnectedSandbox> {
  return connectSandbox({ id: container, stream: relay(), key, epoch: 1, heartbeatMs: 0, ...change })
}

/** Resolves when the other end closes it. */
async function closed(stream: Duplex): Promise<void> {
  await new Promise((resolve) => stream.on('close', resolve).resume())
}

/** Runs Python inside, as a command of the person. */
async function python(sandbox: ConnectedSandbox, text: string): Promise<string> {
  const { out, err } = await sh(sandbox, ['python3', '-c', text])
  return out + err
}

/** A replaced relay passes its last bytes on, for at most 2.5 s. */
async function relaysIn(sandbox: ConnectedSandbox): Promise<string> {
  return (await sh(sandbox, 'pgrep -c sbxd-relay')).out
}

test('a command runs on the stream of a relay, and the next relay ends it', async () => {
  const sandbox = await connect()
  // The binary cannot be read, and sbxd may raise the score of its commands all the same.
  const printed = { code: 0, out: 'hello\n500\n' }
  expect(await sh(sandbox, 'echo hello; cat /proc/self/oom_score_adj')).toMatchObject(printed)
  const again = await connect()
  expect(await sandbox.closed).toMatchObject({ code: 'fenced' })
  expect(await sh(again, 'echo again')).toMatchObject({ out: 'again\n' })
  await expect.poll(() => relaysIn(again), { timeout: 5_000 }).toBe('1\n')
})

test('a reset ends every command and keeps the stream', async () => {
  const sandbox = await connect()
  const command = await sandbox.run({ id: newId(), command: 'setsid sleep 300 & sleep 300' })
  await sandbox.reset()
  expect(await command.exit).toMatchObject({ cause: 'cancel' })
  expect(await sh(sandbox, 'pgrep -c sleep')).toMatchObject({ out: '0\n' })
})

test('32 MiB arrive whole, whatever ends the relay and wherever, and no relay is left', async () => {
  const LINES = 4_194_304
  const random = randomFrom(`${campaign.seed} cut relays`)
  const signal = async (name: string): Promise<void> => {
    await engine(`exec ${container} sh -c`, `kill -${name} $(pgrep sbxd-relay)`)
  }
  const ends = [
    async (stream: Duplex) => void stream.destroy(),
    async (stream: Duplex) => void stream.end(),
    () => signal('KILL'),
    () => signal('STOP'),
    async () => {}, // the next relay ends it
  ]
  const id = newId()
  const hash = createHash('sha256')
  let received = 0
  for (let round = 0; received < LINES * 8; round += 1) {
    const stream = relay()
    const sandbox = await connect({ stream })
    const command =
      round === 0
        ? await sandbox.run({ id, command: `seq -w 1 ${LINES}` })
        : await sandbox.attach(id, { stdout: received })
    const until = received + (round < ends.length ? random() * 6e6 : Infinity)
    for await (const { offset, data } of command?.output ?? []) {
      expect(offset).toBe(received)
      hash.update(data)
      received += data.length
      command?.acknowledge({ stdout: received })
      if (received >= until) break
    }
    if (round < ends.length) await ends[round]?.(stream)
    else expect(await command?.exit).toMatchObject({ code: 0 })
  }
  const expected = createHash('sha256')
  for (let from = 1; from <= LINES; from += 65_536)
    expected.update(Array.from({ length: 65_536 }, (_, i) => `${from + i}\n`.padStart(8, '0')).join(''))
  expect(hash.digest('hex')).toBe(expected.digest('hex'))
  const last = await connect()
  await expect.poll(() => relaysIn(last), { timeout: 5_000 }).toBe('1\n')
})

test('relays without an accepted HELLO disturb no session, and end', async () => {
  const said: Buffer[] = []
  const first = relay()
  const pass = new PassThrough().on('data', (chunk: Buffer) => said.push(Buffer.from(chunk)))
  pass.pipe(first)
  const session = await connect({ stream: Duplex.from({ readable: first, writable: pass }) })
  const hello = Buffer.concat(said).subarray(RESYNC_BYTES)
  expect(hello.length).toBeGreaterThanOrEqual(78)
  let ended = false
  void session.closed.then(() => (ended = true))
  const counting = sh(session, 'for ((i = 0; i < 60; i++)); do echo $i; sleep 0.1; done')
  const words = [hello, hello.subarray(0, 40), randomBytes(300_000), Buffer.alloc(0)]
  const others = words.map((bytes) => {
    const stream = relay()
    stream.write(bytes)
    return closed(stream)
  })
  await Promise.all(others)
  await expect(connect({ key: randomBytes(32) })).rejects.toMatchObject({ code: 'protocol' })
  await expect(connect({ epoch: 0 })).rejects.toMatchObject({ code: 'fenced' })
  const { out } = await counting
  expect(out).toBe(Array.from({ length: 60 }, (_, i) => `${i}\n`).join(''))
  expect(ended).toBe(false)
})

test('relays that say nothing keep no other out', async () => {
  const idle = Array.from({ length: 8 }, () => closed(relay()))
  const sandbox = await connect()
  await Promise.all(idle)
  expect(await sh(sandbox, 'pgrep -c sbxd-relay')).toMatchObject({ out: '1\n' })
})

test('a command cannot speak with sbxd, and 1,000 tries neither disturb a session nor keep it busy', async () => {
  const sandbox = await connect()
  const trying = python(
    sandbox,
    `
import socket
refused = 0
for i in range(1000):
    s = socket.socket(socket.AF_UNIX)
    s.connect('\\0sandlot-sbxd')
    try:
        s.send(b'\\xa7\\x01\\x00\\x00')
        refused += s.recv(1) == b''
    except (BrokenPipeError, ConnectionResetError):
        refused += 1
print(refused)`,
  )
  let longest = 0
  for (let over = false; !over;) {
    const from = performance.now()
    over = await Promise.race([trying.then(() => true), sandbox.commands().then(() => false)])
    longest = Math.max(longest, performance.now() - from)
  }
  expect(await trying).toBe('1000\n')
  expect(longest).toBeLessThan(2_000)
  const ticks = "awk '{print $14 + $15}' /proc/1/stat"
  const { out } = await sh(sandbox, `a=$(${ticks}); sleep 2; echo $(($(${ticks}) - a))`)
  expect(Number(out)).toBeLessThan(20)
  const own = await sh(sandbox, '/usr/lib/sandlot/sbxd relay </dev/null; echo $?; pgrep -c sbxd-relay')
  expect(own).toMatchObject({ out: '3\n1\n', err: expect.stringMatching(/^sbxd relay: refused: .*\n$/) })
})

test('a command reads nothing of the relay', async () => {
  const sandbox = await connect()
  const read = (of: string): string =>
    ['mem', 'environ', 'maps', 'exe'].map((file) => `head -c0 /proc/${of}/${file} && echo open;`).join('') +
    `ls /proc/${of}/fd/ >&2 && echo open`
  const all = await sh(sandbox, `sleep 60 & ${read('$!')}; kill $!`)
  expect(all.out).toBe('open\n'.repeat(5))
  const { out, err } = await sh(sandbox, `r=$(pgrep sbxd-relay); ${read('$r')}; cat /usr/lib/sandlot/sbxd`)
  expect(out).toBe('')
  expect(err.match(/Permission denied/g)).toHaveLength(6)
})

/** Why a number proves nothing: one that connected has ended, and the relay has its number now. */
async function stealNumber(within: string): Promise<{ number: string; relays: string; heard: string }> {
  const session = await connect({ stream: relay(within) })
  const script = `
import os, socket, time
while not os.path.exists('go'): time.sleep(0.02)
s = socket.socket(socket.AF_UNIX)
child = os.fork()
if child == 0:
    s.connect('\\0sandlot-sbxd')
    os._exit(0)
os.waitpid(child, 0)
open('number.new', 'w').write(str(child))
os.rename('number.new', 'number')
try: heard = s.recv(1).hex()
except ConnectionResetError: heard = ''
open('heard.new', 'w').write('heard ' + heard)
os.rename('heard.new', 'heard')`
  await session.run({ id: newId(), command: ['python3', '-c', script] })
  const inside = (shell: string): Promise<string> => docker('exec', within, 'sh', '-c', shell)
  const wait = (file: string): Promise<string> =>
    inside(`until [ -e ${file} ]; do sleep 0.05; done; cat ${file}`)
  await docker('kill', '--signal', 'STOP', within)
  await inside('touch go')
  const number = await wait('number')
  const next = `echo ${Number(number) - 1} >/proc/sys/kernel/ns_last_pid`
  const options = `--cap-add SYS_ADMIN --security-opt systempaths=unconfined --user 0:0 --entrypoint sh`
  await engine(`run --rm ${options} --pid container:${within} ${testConfig.image} -c`, next)
  const stream = relay(within)
  // Seen from outside: a process that looked from inside could get the number.
  const names = (): Promise<string> => docker('top', within, '-o', 'pid,comm')
  await expect.poll(names, { timeout: 30_000 }).toMatch(/sbxd-relay[^]*sbxd-relay/)
  await docker('kill', '--signal', 'CONT', within)
  const sandbox = await connect({ stream })
  const { out: relays } = await sh(sandbox, 'pgrep sbxd-relay')
  return { number, relays: relays.trim(), heard: await wait('heard') }
}

test('a command is not taken for the relay that got its number', async () => {
  const { number, relays, heard } = await stealNumber(await runListening())
  expect(relays).toBe(number)
  expect(heard).toBe('heard')
})

test('nor on a kernel that does not name the process behind a connection', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sandlot-relay-'))
  try {
    const binary = await buildUnpinnedSbxd(folder)
    await chmod(binary, 0o755)
    const within = await runListening(
      ` --volume ${binary}:/usr/bin/sbxd:ro --volume ${binary}:/usr/lib/sandlot/sbxd:ro`,
    )
    const { number, relays, heard } = await stealNumber(within)
    expect(relays).toBe(number)
    expect(heard).toBe('heard')
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})

test('where nothing listens the relay says so', async () => {
  const id = await engine(`run --detach --interactive --network none ${testConfig.image}`)
  started.push(id)
  await expect(docker('exec', id, '/usr/lib/sandlot/sbxd', 'relay')).rejects.toMatchObject({
    code: 2,
    stderr: 'sbxd relay: no sbxd listens in this sandbox\n',
  })
})

test('every interface but the loopback is taken down, by CAP_NET_ADMIN alone', async () => {
  const text = `
import fcntl, os, socket, struct, subprocess
attribute = lambda kind, data: struct.pack('HH', 4 + len(data), kind) + data + b'\\0' * (-len(data) % 4)
body = struct.pack('BxHiII', 0, 0, 0, 0, 0) + attribute(3, b'eth0\\0') + attribute(18, attribute(1, b'veth'))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack('IHHII', 16 + len(body), 16, 0x605, 1, 0) + body)
assert struct.unpack_from('i', s.recv(999), 16)[0] == 0
names = sorted(os.listdir('/sys/class/net'))
flags = lambda: [name + ' ' + str(int(open('/sys/class/net/' + name + '/flags').read(), 16) & 1) for name in names]
for name in names: fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', name.encode(), 1))
print(flags())
print(subprocess.call(['/usr/bin/sbxd', 'network-down']), flags())
fcntl.ioctl(socket.socket(), 0x8914, struct.pack('16sh', b'eth0', 1))
print(subprocess.call(['setpriv', '--bounding-set=-all', '/usr/bin/sbxd', 'network-down']))`
  const options = '--network none --user 0:0 --cap-drop ALL --cap-add NET_ADMIN --cap-add SETPCAP'
  const out = await engine(`run --rm ${options} --entrypoint python3 ${testConfig.image} -c`, text)
  expect(out.split('\n')).toEqual(["['eth0 1', 'lo 1', 'veth0 1']", "0 ['eth0 0', 'lo 1', 'veth0 0']", '1'])
})

test('then the home is made by the user of the sandbox, once; nothing in its place is taken for it', async () => {
  const text = `
import os, subprocess
def prepare(uid):
    done = subprocess.run(['/usr/bin/sbxd', 'network-down', uid], stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr.strip()
home = lambda: (lambda s: (s.st_uid, s.st_gid, oct(s.st_mode)))(os.lstat('/volume/home'))
os.umask(0o77)
print(prepare('31234'), home())
subprocess.call(['setpriv', '--reuid=31234', '--regid=31234', '--clear-groups', 'chmod', '0755', '/volume/home'])
print(prepare('31234'), home())
for uid in ['0', '-1', '31234x', '', '4294967296', ' 31234', '+31234', '-18446744073709520382']: print(prepare(uid))
os.rmdir('/volume/home'); os.symlink('/etc', '/volume/home')
print(prepare('31234'))`
  const rights = ['NET_ADMIN', 'SETUID', 'SETGID'].map((right) => `--cap-add ${right}`).join(' ')
  const options = `--network none --user 0:31234 --tmpfs /volume:mode=2770,gid=31234 --cap-drop ALL ${rights} --security-opt no-new-privileges`
  const out = await engine(`run --rm ${options} --entrypoint python3 ${testConfig.image} -c`, text)
  expect(out.split('\n')).toEqual([
    "(0, '') (31234, 31234, '0o42700')",
    "(0, '') (31234, 31234, '0o42755')",
    ...['0', '-1', '31234x', '', '4294967296', ' 31234', '+31234', '-18446744073709520382'].map(
      (uid) => `(1, 'sbxd network-down: ${uid}: Invalid argument')`,
    ),
    "(1, 'sbxd network-down: /volume/home: Not a directory')",
  ])
})
