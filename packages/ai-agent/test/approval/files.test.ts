/** Files by which programs are started later without being asked for: an edit of one asks in `auto-edit`. */
import type { Rule } from '@sandlot/shared/chat/rules'
import { expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'

function verdictOf(path: string): string {
  const asks = [{ kind: 'file' as const, access: 'write' as const, path }]
  return judge({ tool: 'write_file', kind: 'edit', readOnly: false, asks }, [], 'auto-edit').verdict
}

test.each([
  [
    'git and its hooks',
    '.git/config .git/hooks/pre-commit a/.git/info/attributes .gitmodules .gitconfig HEAD .husky/pre-commit',
  ],
  ['hooks of others', '.pre-commit-config.yaml lefthook.yml .hg/hgrc'],
  [
    'shells',
    '.bashrc .profile .bash_logout .zshenv .zprofile .envrc sub/.envrc .inputrc .config/fish/config.fish',
  ],
  [
    'editors',
    '.vimrc .exrc .nvim.lua .vscode/tasks.json web/.vscode/settings.json .idea/workspace.xml .dir-locals.el .vim/plugin/x.vim',
  ],
  [
    'builds',
    '.cargo/config.toml crate/.cargo/config .mvn/extensions.xml .gradle/init.d/a.gradle .yarnrc.yml .yarn/plugins/x.cjs .npmrc .bundle/config',
  ],
  ['programs in PATH', 'node_modules/.bin/eslint web/node_modules/.bin/tsc .venv/bin/python .local/bin/git'],
  ['interpreters and debuggers', '.gdbinit .pdbrc .irbrc lib/sitecustomize.py lib/x.pth .psqlrc'],
  ['other agents', '.mcp.json .claude/settings.json .cursor/mcp.json .devcontainer/devcontainer.json'],
])('an edit of files of %s asks', (_, paths) => {
  for (const path of paths.split(' ')) expect([path, verdictOf(path)]).toEqual([path, 'ask'])
})

test('what runs when it is asked for is an ordinary file', () => {
  const paths =
    'Makefile package.json src/a.ts .gitignore .gitattributes .editorconfig .eslintrc.js Dockerfile conftest.py setup.py Cargo.toml .github/workflows/ci.yml node_modules/a/index.js .env vscode/tasks.json cargo/config.toml'
  for (const path of paths.split(' ')) expect([path, verdictOf(path)]).toEqual([path, 'allow'])
})

test('a rule about files also holds where a folder above it is moved, packed, copied or linked', () => {
  const denies: Rule = {
    id: 'r',
    effect: 'deny',
    match: { file: 'secrets/keys/**' },
    origin: 'user',
    createdAt: 0,
  }
  const verdict = (command: string): string =>
    judge(
      { tool: 'sh', kind: 'execute', readOnly: false, asks: [{ kind: 'shell', command }] },
      [denies],
      'yolo',
    ).verdict
  for (const command of [
    'tar czf x.tgz .',
    'tar czf x.tgz secrets',
    'zip -r x.zip ./secrets',
    'mv secrets elsewhere',
    'cp -r /workspace /tmp',
    'rsync -a secrets/ /tmp/x',
    'git archive -o x.tar HEAD:./secrets .',
    'chmod -R 777 secrets',
  ])
    expect([command, verdict(command)]).toEqual([command, 'ask'])
  for (const command of ['ln secrets/keys/a b', 'mv secrets/keys x', 'tar cf x.tar secrets/keys/a'])
    expect([command, verdict(command)]).toEqual([command, 'deny'])
  for (const command of ['npm test', 'tar czf x.tgz src', 'mv a secrets-of-others'])
    expect([command, verdict(command)]).toEqual([command, 'allow'])
})
