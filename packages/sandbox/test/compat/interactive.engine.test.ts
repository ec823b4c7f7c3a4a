/** Programs that people sit in front of, in a terminal of a sandbox with the default limits. */
import { expect } from 'vitest'

import type { RunRequest } from '../../src/sandbox.ts'
import { openScreen, type Screen } from '../contract/screen.ts'
import { shell } from '../support/docker-fixture.ts'
import { compatible } from './box.ts'

interface Sitting {
  title: string
  command: RunRequest['command']
  /** Types and looks; the program ends by it, with 0. */
  use(screen: Screen): Promise<void>
  /** Shell text that prints `yes` when what was done can be seen afterwards. */
  check?: string
}

const ESCAPE = '\x1b'
const CTRL = { c: '\x03', d: '\x04', z: '\x1a' } as const

const SITTINGS: readonly Sitting[] = [
  {
    title: 'vim: write a file',
    command: ['vi', '-u', 'NONE', 'written'],
    async use(screen) {
      await screen.sees('~')
      await screen.type('ihello from vi')
      await screen.sees('hello from vi')
      await screen.type(`${ESCAPE}:wq\n`)
    },
    check: 'grep -qx "hello from vi" written && echo yes',
  },
  {
    title: 'top: draws, and quits by a key',
    command: ['top', '-d', '1'],
    async use(screen) {
      await screen.sees('PID')
      await screen.sees('top')
      await screen.type('q')
    },
  },
  {
    title: 'less: forward, search and quit',
    command: 'seq 1000 | less',
    async use(screen) {
      await screen.sees('22')
      await screen.type('/777\n')
      await screen.sees('777')
      await screen.type('q')
    },
  },
  {
    title: 'python: a prompt with line editing',
    command: ['python3', '-q'],
    async use(screen) {
      await screen.sees('>>> ')
      await screen.type('for i in range(3): print("n", i * 7)\n\n')
      await screen.sees('n 14')
      await screen.sees('>>> ')
      await screen.type('import time; print("wa" + "iting"); exec("while True: time.sleep(0.05)")\n')
      await screen.sees('waiting')
      await screen.type(CTRL.c)
      await screen.sees('KeyboardInterrupt')
      await screen.sees('>>> ')
      // Python ends by SIGINT when its last statement did.
      await screen.type('print("go", "on", sep="-")\n')
      await screen.sees('go-on')
      await screen.sees('>>> ')
      await screen.type(CTRL.d)
    },
  },
  {
    title: 'node: a prompt',
    command: ['node'],
    async use(screen) {
      await screen.sees('> ')
      await screen.type('[1, 2, 3].map((n) => n * 111).join("/")\n')
      await screen.sees('111/222/333')
      await screen.sees('> ')
      await screen.type('.exit\n')
    },
  },
  {
    title: 'bash: jobs, stopped and brought back',
    command: ['env', 'PS1=ready> ', 'HISTFILE=', 'bash', '--norc', '--noprofile', '-i'],
    async use(screen) {
      await screen.sees('ready> ')
      await screen.type('echo be""gin; sed -u "s/^/got /"\n')
      await screen.sees('begin\r\n')
      await screen.type('one\n')
      await screen.sees('got one')
      await screen.type(CTRL.z)
      await screen.sees('Stopped')
      await screen.sees('ready> ')
      await screen.type('fg\n')
      await screen.type('two\n')
      await screen.sees('got two')
      await screen.type(CTRL.d)
      await screen.sees('ready> ')
      await screen.type('echo a b c | wc -w; exit 0\n')
      await screen.sees('3\r\n')
    },
  },
  {
    title: 'bash: a job goes on in the background, and a shell within the shell',
    command: ['env', 'PS1=ready> ', 'HISTFILE=', 'bash', '--norc', '--noprofile', '-i'],
    async use(screen) {
      await screen.sees('ready> ')
      // A program, not the shell's own loop: of that ^Z stops what just runs, if anything does.
      await screen.type(
        `rm -f go; sh -c 'echo beg""un; until test -e go; do sleep 0.05; done; echo was wait""ing'\n`,
      )
      await screen.sees('begun')
      await screen.type(CTRL.z)
      await screen.sees('Stopped')
      await screen.type('bg %1; PS1="inn""er> " bash --norc --noprofile -i\n')
      await screen.sees('inner> ')
      await screen.type('touch go; exit\n')
      await screen.sees('was waiting')
      await screen.type('wait; echo all d""one; exit 0\n')
      await screen.sees('all done')
    },
  },
  {
    title: 'sqlite3: a prompt, a statement over two lines and a table',
    command: 'rm -f s.db; sqlite3 s.db',
    async use(screen) {
      await screen.sees('sqlite> ')
      await screen.type('create table t(n);\ninsert into t\n')
      await screen.sees('...>')
      await screen.type('values (20), (22);\nselect sum(n) from t;\n')
      await screen.sees('42')
      await screen.type('.quit\n')
    },
  },
  {
    title: 'read -s: a secret is not shown',
    command: 'read -rsp "Password: " secret; echo; test "$secret" = hidden-word && echo accepted',
    async use(screen) {
      await screen.sees('Password: ')
      await screen.type('hidden-word\n')
      await screen.sees('accepted')
      expect(screen.text()).not.toContain('hidden-word')
    },
  },
  {
    title: 'getpass of python, and ssh-keygen asking for a passphrase',
    command: `python3 -c 'import getpass; assert getpass.getpass("Secret: ") == "one two"' &&
      rm -f key && ssh-keygen -q -t ed25519 -f key`,
    async use(screen) {
      await screen.sees('Secret: ')
      await screen.type('one two\n')
      await screen.sees('passphrase')
      await screen.type('five words\n')
      await screen.sees('again')
      await screen.type('five words\n')
    },
    check: 'ssh-keygen -y -P "five words" -f key >/dev/null && echo yes',
  },
  {
    title: 'git: a message in the editor, and a pager',
    command: `rm -rf repo && git init -q repo && cd repo && touch f && git add f &&
      GIT_EDITOR='vi -u NONE' git commit -q && git -c core.pager='less -+F' log`,
    async use(screen) {
      await screen.sees('Please enter the commit message')
      await screen.type(`ia message${ESCAPE}:wq\n`)
      await screen.sees('Author:')
      await screen.sees('a message')
      await screen.type('q')
    },
  },
]

compatible('interactive programs', SITTINGS, 3, async (sandbox, { command, use, check }) => {
  const screen = await openScreen(sandbox, { command, terminal: { rows: 24, columns: 80 } })
  await use(screen)
  const exit = await screen.end()
  expect({ code: exit.code, cause: exit.cause, shown: exit.code === 0 ? '' : screen.text() }).toEqual({
    code: 0,
    cause: 'exited',
    shown: '',
  })
  if (check !== undefined) expect((await shell(sandbox, check)).output).toBe('yes\n')
})
