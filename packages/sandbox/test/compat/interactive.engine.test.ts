/** Programs that people sit in front of, in a terminal of a sandbox with the default limits. */
import { expect } from 'vitest'

import type { RunRequest } from '../../src/sandbox.ts'
import { openScreen } from '../contract/screen.ts'
import { shell } from '../support/docker-fixture.ts'
import { compatible } from './box.ts'

interface Sitting {
  title: string
  command: RunRequest['command']
  /**
   * Expected text on the screen, and the keys that are then typed; the program ends by the last
   * ones, with 0.
   */
  dialog: readonly (readonly [sees: string, ...keys: string[]])[]
  /** Never on the screen. */
  hidden?: string
  /** Shell text that prints `yes` when what was done can be seen afterwards. */
  check?: string
}

const ESCAPE = '\x1b'
const CTRL = { c: '\x03', d: '\x04', z: '\x1a' } as const

const SITTINGS: readonly Sitting[] = [
  {
    title: 'vim: write a file',
    command: ['vi', '-u', 'NONE', 'written'],
    dialog: [
      ['~', 'ihello from vi'],
      ['hello from vi', `${ESCAPE}:wq\n`],
    ],
    check: 'grep -qx "hello from vi" written && echo yes',
  },
  {
    title: 'top: draws, and quits by a key',
    command: ['top', '-d', '1'],
    dialog: [['PID'], ['top', 'q']],
  },
  {
    title: 'less: forward, search and quit',
    command: 'seq 1000 | less',
    dialog: [
      ['22', '/777\n'],
      ['777', 'q'],
    ],
  },
  {
    title: 'python: a prompt with line editing',
    command: ['python3', '-q'],
    dialog: [
      ['>>> ', 'for i in range(3): print("n", i * 7)\n\n'],
      ['n 14'],
      ['>>> ', 'import time; print("wa" + "iting"); exec("while True: time.sleep(0.05)")\n'],
      ['waiting', CTRL.c],
      ['KeyboardInterrupt'],
      // Python ends by SIGINT when its last statement did.
      ['>>> ', 'print("go", "on", sep="-")\n'],
      ['go-on'],
      ['>>> ', CTRL.d],
    ],
  },
  {
    title: 'node: a prompt',
    command: ['node'],
    dialog: [['> ', '[1, 2, 3].map((n) => n * 111).join("/")\n'], ['111/222/333'], ['> ', '.exit\n']],
  },
  {
    title: 'bash: jobs, stopped and brought back',
    command: ['env', 'PS1=ready> ', 'HISTFILE=', 'bash', '--norc', '--noprofile', '-i'],
    dialog: [
      ['ready> ', 'echo be""gin; sed -u "s/^/got /"\n'],
      ['begin\r\n', 'one\n'],
      ['got one', CTRL.z],
      ['Stopped'],
      ['ready> ', 'fg\n', 'two\n'],
      ['got two', CTRL.d],
      ['ready> ', 'echo a b c | wc -w; exit 0\n'],
      ['3\r\n'],
    ],
  },
  {
    title: 'bash: a job goes on in the background, and a shell within the shell',
    command: ['env', 'PS1=ready> ', 'HISTFILE=', 'bash', '--norc', '--noprofile', '-i'],
    dialog: [
      // A program, not the shell's own loop: of that ^Z stops what just runs, if anything does.
      [
        'ready> ',
        `rm -f go; sh -c 'echo beg""un; until test -e go; do sleep 0.05; done; echo was wait""ing'\n`,
      ],
      ['begun', CTRL.z],
      ['Stopped', 'bg %1; PS1="inn""er> " bash --norc --noprofile -i\n'],
      ['inner> ', 'touch go; exit\n'],
      ['was waiting', 'wait; echo all d""one; exit 0\n'],
      ['all done'],
    ],
  },
  {
    title: 'sqlite3: a prompt, a statement over two lines and a table',
    command: 'rm -f s.db; sqlite3 s.db',
    dialog: [
      ['sqlite> ', 'create table t(n);\ninsert into t\n'],
      ['...>', 'values (20), (22);\nselect sum(n) from t;\n'],
      ['42', '.quit\n'],
    ],
  },
  {
    title: 'read -s: a secret is not shown',
    command: 'read -rsp "Password: " secret; echo; test "$secret" = hidden-word && echo accepted',
    dialog: [['Password: ', 'hidden-word\n'], ['accepted']],
    hidden: 'hidden-word',
  },
  {
    title: 'getpass of python, and ssh-keygen asking for a passphrase',
    command: `python3 -c 'import getpass; assert getpass.getpass("Secret: ") == "one two"' &&
      rm -f key && ssh-keygen -q -t ed25519 -f key`,
    dialog: [
      ['Secret: ', 'one two\n'],
      ['passphrase', 'five words\n'],
      ['again', 'five words\n'],
    ],
    check: 'ssh-keygen -y -P "five words" -f key >/dev/null && echo yes',
  },
  {
    title: 'git: a message in the editor, and a pager',
    command: `rm -rf repo && git init -q repo && cd repo && touch f && git add f &&
      GIT_EDITOR='vi -u NONE' git commit -q && git -c core.pager='less -+F' log`,
    dialog: [
      ['Please enter the commit message', `ia message${ESCAPE}:wq\n`],
      ['Author:'],
      ['a message', 'q'],
    ],
  },
]

compatible('interactive programs', SITTINGS, 3, async (sandbox, { command, dialog, hidden, check }) => {
  const screen = await openScreen(sandbox, { command, terminal: { rows: 24, columns: 80 } })
  for (const [sees, ...keys] of dialog) {
    await screen.sees(sees)
    for (const key of keys) await screen.type(key)
  }
  const exit = await screen.end()
  if (hidden !== undefined) expect(screen.text()).not.toContain(hidden)
  expect({ code: exit.code, cause: exit.cause, shown: exit.code === 0 ? '' : screen.text() }).toEqual({
    code: 0,
    cause: 'exited',
    shown: '',
  })
  if (check !== undefined) expect((await shell(sandbox, check)).output).toBe('yes\n')
})
