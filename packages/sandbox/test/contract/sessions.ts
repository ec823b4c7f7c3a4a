import { expect } from 'vitest'

import { extent, sample } from '../../../../test/campaign.ts'
import type { RunRequest, Sandbox } from '../../src/sandbox.ts'
import type { Suite } from '../support/contract.ts'
import { COPIES, FORGER, FORGERIES } from './forger.ts'
import { Bench, finish, newId, type Result, sh } from './harness.ts'
import { SCRIPTS } from './session-scripts.ts'

const SIGNALLED = 'signal '

/** The most memory that sbxd ever had: it is the parent of a command's parent. */
async function greatestKiB(box: Sandbox): Promise<number> {
  const shim = 'read -r _ _ _ sbxd _ </proc/$PPID/stat'
  const { out } = await sh(box, `${shim}; sed -n 's/^VmHWM:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$sbxd/status`)
  return Number(out)
}

export function sessionTests({ it, sandbox, fixture }: Suite): void {
  /** One command after the other in a session of its own. */
  function session(name = newId()) {
    return (command: RunRequest['command'], options: Partial<RunRequest> = {}): Promise<Result> =>
      sh(sandbox(), command, { session: name, ...options })
  }

  it('hands the directory and exported variables on, and nothing else', async () => {
    const run = session()
    const { workspace } = sandbox()
    const first = await run('mkdir -p deep/er; cd deep/er; export A="x y\nz" B=2; C=3; f() { :; }; set -u')
    expect(first).toMatchObject({ code: 0, out: '', err: '', session: 'kept' })
    const second = await run('pwd; echo "$A|$B|${C-none}|$OLDPWD"; type f 2>/dev/null; unset B')
    expect(second.out).toBe(`${workspace}/deep/er\nx y\nz|2|none|${workspace}\n`)
    expect((await run('cd -; echo "${B-gone}"')).out).toBe(`${workspace}\ngone\n`)
    expect((await run('echo $SHLVL; env | grep -c "^SANDLOT\\|^LD_PRELOAD"')).out).toBe('1\n0\n')
    expect((await sh(sandbox(), 'pwd; echo "${A-none}"')).out).toBe(`${workspace}\nnone\n`)
  })

  it('hands on exported functions, and that a variable is exported no more', async () => {
    const run = session()
    await run('greet() { echo "hello $1"; }; export -f greet; unset LANG; export -n TZ; true')
    const { out } = await run('greet you; echo "${LANG-no}|${TZ-no}"; bash -c "greet child"')
    expect(out).toBe('hello you\nno|no\nhello child\n')
  })

  it('keeps what belongs to one command or one function out of it', async () => {
    const run = session()
    await run('export A=1; f() { local -x A=2 L=1; B=1 exec true; }; f')
    expect((await run('echo "$A|${B-no}|${L-no}"; E=1 env >/dev/null')).out).toBe('1|no|no\n')
    expect((await run('echo "${E-no}"')).out).toBe('no\n')
  })

  it('takes the variables of a request for one command, unless the command changes them', async () => {
    const run = session()
    await run('export OWN=1')
    const options = { env: { TOKEN: 'secret', OWN: '2', PATH: '/usr/bin:/bin', SET: 'a' } }
    expect((await run('echo $TOKEN $OWN; export SET=b', options)).out).toBe('secret 2\n')
    expect((await run('echo "${TOKEN-no} $OWN $SET"')).out).toBe('no 1 b\n')
    const path = (await sh(sandbox(), 'echo $PATH')).out
    expect((await run('echo $PATH')).out).toBe(path)
  })

  const endings: readonly { title: string; script: string; moves: boolean }[] = [
    { title: 'exit', script: 'cd sub; exit 3', moves: true },
    { title: 'set -e', script: 'set -e; cd sub; false; cd ..', moves: true },
    { title: 'a trap', script: 'trap "cd sub" EXIT; exit 2', moves: true },
    { title: 'an error of syntax', script: 'cd sub; eval "if then"; true', moves: true },
    { title: 'exec', script: 'cd sub; exec sh -c "cd /; exit 3"', moves: true },
    { title: 'a failed exec', script: 'cd sub; exec nothing-of-this-name', moves: true },
    { title: 'a last command that is its own process', script: 'cd sub; sleep 0', moves: true },
    { title: 'a last command that crashes', script: "cd sub; sh -c 'kill -SEGV $$'", moves: true },
    { title: 'a script without #!', script: 'printf "cd /" >s; chmod +x s; cd sub; ../s', moves: true },
    { title: 'a subshell', script: '(cd sub); { cd sub; } | cat; x=$(cd sub); cd sub & wait', moves: false },
    { title: 'another shell', script: 'bash -c "cd sub"', moves: false },
    { title: `${SIGNALLED}TERM`, script: 'cd sub; kill -TERM $$; sleep 5', moves: false },
    { title: `${SIGNALLED}KILL`, script: 'cd sub; kill -KILL $$', moves: false },
  ]
  it('knows where a shell stopped, however it ended', async () => {
    const wrong: string[] = []
    for (const { title, script, moves } of endings) {
      const run = session()
      await run('mkdir -p ends/sub; cd ends')
      const { session: outcome } = await run(script)
      const at = (await run('basename "$PWD"')).out.trim()
      if (at !== (moves ? 'sub' : 'ends') || outcome !== (title.startsWith(SIGNALLED) ? 'unchanged' : 'kept'))
        wrong.push(`${title}: at ${at}, ${outcome}`)
    }
    expect(wrong).toEqual([])
  })

  it('stays as it was when a command is cancelled or runs out of time', async () => {
    const run = session()
    await run('mkdir -p stays/sub; cd stays')
    expect(await run('cd sub; sleep 100', { timeoutMs: 300 })).toMatchObject({
      cause: 'timeout',
      session: 'unchanged',
    })
    expect((await run('basename "$PWD"')).out).toBe('stays\n')
  })

  it('begins in the workspace when the directory is missing, and reports it', async () => {
    const name = newId()
    const run = session(name)
    await run('mkdir -p gone/er; cd gone/er')
    await sandbox().files.remove('gone', { recursive: true })
    const command = await sandbox().run({ id: newId(), session: name, command: 'pwd', autoAcknowledge: true })
    expect(command.moved).toBe(true)
    expect((await finish(command)).out).toBe(`${sandbox().workspace}\n`)
    // Also when it goes under the shell's own feet, and only until the next directory.
    await run('mkdir gone; cd gone; rmdir ../gone')
    const again = await sandbox().run({ id: newId(), session: name, command: 'cd /', autoAcknowledge: true })
    expect(again.moved).toBe(true)
    await finish(again)
    const last = await sandbox().run({ id: newId(), session: name, command: 'pwd', autoAcknowledge: true })
    expect([last.moved, (await finish(last)).out]).toEqual([false, '/\n'])
  })

  it('begins in its home until a command has moved it, and says where that is not there', async () => {
    const name = newId()
    const run = session(name)
    const home = `${sandbox().workspace}/home/of it`
    const command = await sandbox().run({
      id: newId(),
      session: name,
      home,
      command: 'pwd',
      autoAcknowledge: true,
    })
    expect([command.moved, (await finish(command)).out]).toEqual([true, `${sandbox().workspace}\n`])
    const other = session(newId())
    await run('mkdir -p "home/of it"')
    expect((await other('pwd; cd ..', { home })).out).toBe(`${home}\n`)
    expect((await other('pwd', { home })).out).toBe(`${sandbox().workspace}/home\n`)
    expect((await session(newId())('pwd', { home, cwd: '/' })).out).toBe('/\n')
  })

  it('lets the last one to end win', async () => {
    const run = session()
    await run('mkdir -p race/a race/b; cd race; rm -f ended')
    const slow = run('cd a; until test -e ../ended; do sleep 0.02; done')
    await run('cd b; true')
    // Outside the session: a command of it might end even later.
    await sandbox().files.write('race/ended', new Uint8Array())
    await slow
    expect((await run('basename "$PWD"')).out).toBe('a\n')
  })

  it('is not what an argument vector leaves, but where it begins', async () => {
    const run = session()
    await run('mkdir -p vector; cd vector; export V=1')
    expect((await run(['sh', '-c', 'pwd; echo $V; cd /'])).out).toBe(`${sandbox().workspace}/vector\n1\n`)
    expect((await run('basename "$PWD"')).out).toBe('vector\n')
    expect((await run('pwd', { cwd: '/' })).out).toBe('/\n')
  })

  it('refuses a state that is too big, and stays as it was', async () => {
    const run = session()
    await run('export SMALL=1')
    const big = 'for i in {1..30}; do printf -v "V$i" "%010000d" 0; export "V$i"; done'
    expect((await run(big)).session).toBe('refused')
    expect((await run('for i in {1..5000}; do export "V$i=1"; done')).session).toBe('refused')
    expect((await run('printf -v X "%0131000d" 0; export X; true')).session).toBe('kept')
    expect((await run('printf -v X "%0140000d" 0; export X; true')).session).toBe('refused')
    expect((await run('echo "$SMALL ${#X} ${V1-none}"')).out).toBe('1 131000 none\n')
  })

  it('holds few of many sessions, the ones used last', async () => {
    const first = session()
    await first('export N=first')
    const others = Array.from({ length: 70 }, () => newId())
    for (const name of others.slice(0, 50)) await session(name)('export N=1')
    expect((await first('echo $N')).out).toBe('first\n')
    for (const name of others.slice(50)) await session(name)('export N=1')
    expect((await first('echo $N')).out).toBe('first\n')
    expect((await session(others[0])('echo "${N-forgotten}"')).out).toBe('forgotten\n')
  })

  it('continues after a stop and a start, and forgets at a reset', async () => {
    const { bench, sandbox: first } = await Bench.start(fixture())
    const { backend } = fixture()
    await sh(first, 'mkdir project; cd project; export A="x\ny"; unset LANG', { session: 'one' })
    await sh(first, 'mkdir gone; cd gone; export B=1', { session: 'two' })
    await first.files.remove('gone')
    await backend.stop(bench.container.id)
    const own = await bench.connect()
    const at = async (session: string): Promise<unknown[]> => {
      const show = 'echo "$PWD ${A-none} ${B-none} ${LANG-unset}"'
      const command = await own.run({ id: newId(), command: show, session, autoAcknowledge: true })
      return [(await finish(command)).out, command.moved]
    }
    const lang = (await sh(own, 'echo ${LANG-unset}')).out
    expect(await at('one')).toEqual([`${own.workspace}/project x\ny none unset\n`, false])
    expect(await at('two')).toEqual([`${own.workspace} none 1 ${lang}`, true])
    // Closed, so that what harms every command stays: the file belongs to whom the folder does.
    await sh(own, 'chmod 555 .tool-outputs')
    await own.reset()
    expect((await own.files.list('')).map(({ path }) => path)).not.toContain('.tool-outputs')
    expect(await at('one')).toEqual([`${own.workspace} none none ${lang}`, false])
    await own.close()
    await bench.remove()
  })

  it('does not change what a script prints and how it ends', async () => {
    const different: unknown[] = []
    for (const script of sample('session scripts', SCRIPTS, 20)) {
      const facts = ({ out, err, code, signal, cause }: Result) => ({ out, err, code, signal, cause })
      const [plain, inside] = [await sh(sandbox(), script), await sh(sandbox(), script, { session: newId() })]
      if (JSON.stringify(facts(plain)) !== JSON.stringify(facts(inside)))
        different.push({ script, plain: facts(plain), inside: facts(inside) })
    }
    expect(different).toEqual([])
  })

  it('is not locked by a forged state', async () => {
    const box = sandbox()
    await box.files.write('forger.c', Buffer.from(FORGER))
    const made = await sh(box, 'gcc -shared -fPIC -w -o forger.so forger.c')
    expect(made).toMatchObject({ code: 0, err: '' })
    const wrong: unknown[] = []
    for (const { title, bytes, taken } of sample('forged states', FORGERIES, extent(7, FORGERIES.length))) {
      const run = session()
      await run('export BEFORE=1')
      await box.files.write('forged', bytes)
      const { out, session: outcome } = await run('enable -f ./forger.so forger', { cwd: box.workspace })
      const after = await run('echo "works ${BEFORE-none}"; ls /proc/self/exe; true')
      const expected = `works ${taken ? 'none' : '1'}\n/proc/self/exe\n`
      if (out !== 'forged\n' || (outcome === 'kept') !== taken || after.out !== expected)
        wrong.push({ title, out, outcome, after })
    }
    expect(wrong).toEqual([])
  })

  it('needs no more memory for a forged state than for an honest one', async () => {
    const run = session()
    const box = sandbox()
    await box.files.write('forger.c', Buffer.from(FORGER))
    expect(await sh(box, 'gcc -shared -fPIC -w -o forger.so forger.c')).toMatchObject({ code: 0 })
    await run('export LONG=$(printf %0100000d 0)')
    const before = await greatestKiB(box)
    // Each stands for the long value that the session has under this name, because it is what the
    // request said.
    await box.files.write('forged', COPIES)
    const forged = await run('enable -f ./forger.so forger', { cwd: box.workspace, env: { LONG: '1' } })
    expect(forged).toMatchObject({ out: 'forged\n', session: 'refused' })
    expect(await run('echo ${#LONG}')).toMatchObject({ out: '100000\n' })
    expect((await greatestKiB(box)) - before).toBeLessThan(64 * 1024)
  })

  it('forgets the state of a program that could not be started', async () => {
    const run = session()
    await run('export A=1')
    const killed = await run('shopt -s execfail; export A=2; exec /nothing/there 2>/dev/null; kill -9 $$')
    expect(killed.session).toBe('unchanged')
    expect((await run('echo $A')).out).toBe('1\n')
  })

  it('refuses what is not a name', async () => {
    for (const name of ['', 'a b', 'ü', 'x'.repeat(65), 'a\0'])
      await expect(sh(sandbox(), 'true', { session: name })).rejects.toMatchObject({
        code: 'invalid_arguments',
      })
  })
}
