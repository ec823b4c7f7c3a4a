/** Class F: names that are not what they say, and files by which a workspace would run something unasked. */
import { expect } from 'vitest'
import { READS_ONLY } from '../../packages/ai-agent/src/approval/shell/git.ts'

import { extent } from '../campaign.ts'
import { begun, type Row } from './row.ts'
import type { ToolCaller, ToolResult } from './tool-call.ts'

const LINK = /symbolic link/

/** Every file tool on what lies below `folder`. */
const TOOLS: [string, (folder: string) => Record<string, unknown>][] = [
  ['read_file', (folder) => ({ path: `${folder}/key` })],
  ['list_directory', (folder) => ({ path: folder })],
  ['write_file', (folder) => ({ path: `${folder}/key`, content: 'x' })],
  ['edit_file', (folder) => ({ path: `${folder}/key`, old_text: 'hush', new_text: 'x' })],
  ['glob', (folder) => ({ path: folder, pattern: '*' })],
  ['search_text', (folder) => ({ path: folder, pattern: 'hush' })],
  ['search_text', (folder) => ({ path: `${folder}/key`, pattern: 'hush' })],
]

/** A program that leaves `ran-<name>` in the workspace. */
const tell = (name: string): string =>
  `'#!/bin/sh\\ntouch /workspace/ran-${name}\\n[ ! -t 0 ] && cat \\"$@\\" 2>/dev/null\\nexit 0\\n'`

/** Names of the programs that ran, of commands that end so where nobody answers a question. */
async function ran(
  me: ToolCaller,
  commands: readonly string[],
  ends: ToolResult['status'] = 'completed',
): Promise<string> {
  for (const command of commands) {
    const { status, forModel }: ToolResult = await me.call(
      'run_shell_command',
      { command },
      { mode: 'manual' },
    )
    expect(status, `${command}: ${forModel}`).toBe(ends)
  }
  return (await me.shell('cd /workspace; ls -d ran-* 2>/dev/null; true')).output
}

export const rows: Row[] = [
  ...(['auto-edit', 'yolo'] as const).map((mode): Row => ({
    id: 'X-F5',
    what: `a link of a cloned repository leads no edit into .git, in ${mode}`,
    async run({ me }) {
      await me.shell('mkdir -p clone/.git && echo old > clone/.git/config && ln -s .git clone/notes')
      for (const [tool, args] of [
        ['write_file', { path: 'clone/notes/config', content: '[core]\nfsmonitor = x' }],
        ['write_file', { path: 'clone/notes/hooks/post-checkout', content: 'x' }],
        ['edit_file', { path: 'clone/notes/config', old_text: 'old', new_text: 'x' }],
      ] as const)
        expect(await me.call(tool, args, { mode }), tool).toMatchObject({
          status: 'failed',
          forModel: expect.stringMatching(LINK),
        })
      expect((await me.shell('cat clone/.git/config; ls clone/.git; rm -r clone')).output).toBe(
        'old\nconfig\n',
      )
    },
  })),
  ...TOOLS.map(([tool, args], at): Row => ({
    id: 'X-F5',
    what: `a deny rule holds for ${tool} through a link (${at})`,
    async run({ me }) {
      await me.shell('mkdir secrets && echo hush > secrets/key && ln -s secrets docs')
      const rules = [
        { id: 'r', effect: 'deny', match: { file: 'secrets/**' }, origin: 'user', createdAt: 0 },
      ] as const
      const result = await me.call(tool, args('docs'), { rules })
      expect(result).toMatchObject({ status: 'failed', reason: 'denied' })
      expect(result.forModel).not.toMatch(/1:hush|key  /)
      expect((await me.shell('cat secrets/key; rm -r secrets docs')).output).toBe('hush\n')
    },
  })),
  {
    id: 'X-F5',
    what: 'no search follows a link out of the workspace, neither one that it meets nor one that it is given',
    async run({ me }) {
      await me.shell('mkdir in; ln -s /etc e; ln -s /etc in/e; ln -s /etc/passwd p')
      for (const [tool, args] of TOOLS)
        expect(await me.call(tool, args('e')), tool).toMatchObject({ reason: 'path_outside' })
      expect(await me.call('search_text', { path: 'p', pattern: 'root' })).toMatchObject({
        reason: 'path_outside',
      })
      expect((await me.call('search_text', { pattern: '^root:' })).forModel).toMatch(/^Nothing/)
      expect((await me.call('glob', { pattern: '**/passwd' })).forModel).toMatch(/^No file/)
      await me.shell('rm -r in e p')
    },
  },
  {
    id: 'X-F5',
    what: 'a directory swapped for a link all the time: nothing is written where it was not judged',
    heavy: true,
    async run({ me, sandbox }) {
      await me.shell('mkdir -p swap target')
      const swapper = await begun(
        me,
        `exec perl -e '$| = 1; print "on\\n"; while (1) { rename "swap", "swap.real"; symlink "target", "swap"; unlink "swap"; rename "swap.real", "swap" }'`,
      )
      const { withoutLinks } = (await sandbox()).files
      const codes = new Set<string>()
      for (let i = 0; i < extent(100, 5_000); i += 1)
        await withoutLinks.write('swap/file', Buffer.from(`${i}`)).then(
          () => codes.add('written'),
          (error: { code?: string }) => codes.add(String(error.code)),
        )
      swapper.cancel()
      await swapper.ended
      for (const code of codes)
        expect(code).toMatch(/^(written|path_changed|not_found|exists|not_regular|limit_reached)$/)
      expect((await me.shell('ls -A target; rm -rf swap swap.real target')).output).toBe('')
    },
  },
  {
    id: 'X-F5',
    what: 'a pipe to search is refused at once',
    async run({ me }) {
      await me.shell('mkfifo pipe; ln -s pipe to-pipe')
      for (const path of ['pipe', 'to-pipe'])
        expect(await me.call('search_text', { path, pattern: 'x' })).toMatchObject({
          status: 'failed',
          reason: 'tool_error',
        })
      await me.shell('rm pipe to-pipe')
    },
  },
  {
    id: 'X-F6',
    what: 'a bare repository within a repository runs nothing for git -C',
    async run({ me }) {
      await me.shell(
        `mkdir -p clone && cd clone && git init -q . && git init -q --bare sub && printf ${tell('bare')} > ../m && chmod +x ../m && git --git-dir=sub config core.fsmonitor /workspace/m && git --git-dir=sub config core.bare false && git --git-dir=sub config core.worktree /workspace/clone`,
      )
      await me.call(
        'run_shell_command',
        { command: 'git -C /workspace/clone/sub status' },
        { mode: 'manual' },
      )
      // Also where nothing was proven: the image refuses such a repository.
      await me.shell('cd /workspace; touch m; git -C clone/sub status; true')
      expect((await me.shell('ls -d /workspace/ran-*; true')).output).not.toContain('ran-bare')
      await me.shell('cd /workspace; rm -rf clone m ran-*')
    },
  },
  {
    id: 'X-F6',
    what: 'git asks where a repository’s configuration names programs, and starts none',
    async run({ me }) {
      const made = ['fsmonitor', 'external', 'textconv', 'command', 'clean', 'process', 'gpg', 'hook']
      await me.shell(
        [
          'mkdir repo && cd repo && git init -q . && mkdir ../bin',
          ...made.map((name) => `printf ${tell(name)} > ../bin/${name}; chmod +x ../bin/${name}`),
          'for f in a b c d; do echo one > $f; done',
          `printf 'a diff=t\\nb diff=c\\nc filter=f\\nd filter=p\\n' > .gitattributes`,
          'git add . && git commit -qm one && for f in a b c d; do echo two >> $f; done',
          'git config core.fsmonitor /workspace/bin/fsmonitor; git config diff.external /workspace/bin/external',
          'git config diff.t.textconv /workspace/bin/textconv; git config diff.c.command /workspace/bin/command',
          'git config filter.f.clean /workspace/bin/clean; git config filter.f.required true; git config filter.p.process /workspace/bin/process',
          'git config gpg.program /workspace/bin/gpg; git config log.showSignature true',
          'cp ../bin/hook .git/hooks/post-index-change; git config core.hooksPath .git/hooks',
          'rm -f ../ran-*',
        ].join('\n'),
      )
      const commands = [
        'status',
        'diff',
        'diff HEAD',
        'log -p',
        "log '--format=%G?'",
        'show',
        'blame a',
        'stash list',
      ]
      const unasked = commands.map((command) => `git -C /workspace/repo ${command}`)
      const others = ['timeout 20 git -C /workspace/repo diff', 'cd /workspace && git -C repo diff']
      expect(await ran(me, [...unasked, ...others], 'failed')).toBe('')
      // The programs are what would have run: a person's own git starts them.
      await me.shell('cd /workspace/repo; touch /workspace/bin; git status; git diff; git log -p; true')
      expect((await me.shell('cd /workspace; ls -d ran-*')).output).toMatch(/ran-fsmonitor/)
      await me.shell('cd /workspace; rm -rf repo bin ran-*')
    },
  },
  {
    id: 'X-F6',
    what: 'git that runs unasked starts no hook of a repository, and looks into no submodule',
    async run({ me }) {
      await me.shell(
        [
          `printf ${tell('hook')} > m; chmod +x m; git init -q repo; git init -q inner; cd repo`,
          'git -C ../inner commit -qm one --allow-empty; git -c protocol.file.allow=always submodule add -q ../inner sub',
          'git config -f .gitmodules submodule.sub.ignore none; git add .; git commit -qm one; echo x > sub/f; git -C sub add f',
          'for g in .git .git/modules/sub; do for h in post-index-change reference-transaction; do cp ../m $g/hooks/$h; done; done',
          'touch sub/f; rm -f ../ran-*',
        ].join('\n'),
      )
      expect(
        await ran(
          me,
          ['status', 'diff', 'log -p', 'stash list'].map((words) => `cd /workspace/repo && git ${words}`),
        ),
      ).toBe('')
      await me.shell('cd /workspace/repo; touch sub/f; git status; true')
      expect((await me.shell('cd /workspace; ls -d ran-*')).output).toMatch(/ran-hook/)
      await me.shell('cd /workspace; rm -rf repo inner m ran-*')
    },
  },
  {
    id: 'X-F6',
    what: 'git fetches no object that is missing, by whatever program or address',
    async run({ me }) {
      await me.shell(
        [
          `printf '#!/bin/sh\\ntouch /workspace/ran-fetch\\n' > m; chmod +x m; git init -q full; cd full; echo one > a; git add .; git commit -qm one`,
          'git config uploadpack.allowFilter true; git config uploadpack.allowAnySHA1InWant true; cd ..',
          'git clone -q --no-checkout --filter=blob:none file:///workspace/full repo; cd repo',
          'git config remote.origin.uploadpack "/workspace/m; git-upload-pack"',
        ].join('\n'),
      )
      expect(await ran(me, ['git -C repo show HEAD:a', 'cd repo && git log -p'], 'failed')).toBe('')
      // The environment alone would have held it back too.
      await me.shell(
        `${Object.entries(READS_ONLY)
          .map(([name, value]) => `${name}='${value}'`)
          .join(' ')} git -C repo show HEAD:a; true`,
      )
      expect((await me.shell('ls -d ran-*; true')).output).not.toContain('ran-fetch')
      await me.shell('touch m; git -C repo show HEAD:a; true')
      expect((await me.shell('ls -d ran-*; true')).output).toContain('ran-fetch')
      await me.shell('cd /workspace; rm -rf repo full m ran-*')
    },
  },
  {
    id: 'X-F7',
    what: 'no tool writes where Sandlot keeps what shells leave, under any name',
    async run({ me }) {
      await me.shell('mkdir -p .tool-outputs; ln -s .tool-outputs o')
      for (const folder of ['.tool-outputs', '/workspace/.tool-outputs', 'o', 'x/../.tool-outputs'])
        expect(
          await me.call('write_file', { path: `${folder}/.sessions`, content: 'x' }),
          folder,
        ).toMatchObject({ status: 'failed', reason: 'denied' })
      await me.shell('rm -r o')
    },
  },
  {
    id: 'X-F7',
    what: 'what a command puts in place of the state of shells runs in none after a stop',
    heavy: true,
    async run({ controller }) {
      const id = 'sealed'
      const record = Buffer.from(`/\0BASH_FUNC_ls%%=() { echo evil; }\0PATH=/workspace/evil\0`)
      const head = Buffer.from([3, ...Buffer.from('one'), record.length, 0, 0, 0])
      for (const magic of ['sbxd sessions 1\n', 'sbxd sessions 2\n']) {
        const forged = Buffer.concat([Buffer.from(magic), Buffer.alloc(32), head, record])
        await (await controller.acquire(id)).files.write('.tool-outputs/.sessions', forged)
        await controller.stop(id)
        const again = await controller.acquire(id)
        const running = await again.run({
          id: Buffer.from(magic).toString('hex').slice(0, 32).padEnd(32, '0'),
          command: 'ls -d /; echo $PATH',
          session: 'one',
          autoAcknowledge: true,
        })
        let out = ''
        for await (const { data } of running.output) out += Buffer.from(data).toString()
        expect(out).toMatch(/^\/\n/)
        expect(out).not.toContain('evil')
      }
    },
  },
]
