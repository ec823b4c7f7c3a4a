import { describe, expect, test } from 'vitest'
import {
  barrelProblems,
  directionProblems,
  nodeEntryProblems,
  environmentProblems,
  machineProblems,
  RULES,
  specifiers,
  vendorProblems,
  versionProblems,
} from './import-rules.ts'
import { read, repositoryFiles, type SourceFile } from './source-files.ts'

const TEXT =
  /\.(ts|tsx|js|mjs|json|md|ya?ml|sh|c|h|css|html|txt|example|conf)$|(^|\/)(Dockerfile|Makefile|sandlot|run|LICENSE|\.[a-z]+)$/

describe('the repository', () => {
  const files = repositoryFiles()
    .filter((path) => TEXT.test(path) && path !== 'pnpm-lock.yaml')
    .map(read)

  test('is seen by these rules', () => {
    const paths = files.map(({ path }) => path)
    expect(paths).toEqual(
      expect.arrayContaining([
        'package.json',
        'sandlot',
        'packages/shared/src/chat/events.ts',
        'docker/sandbox/Dockerfile',
      ]),
    )
  })

  test.each(RULES.map((rule) => ({ name: rule.name, rule })))('has no $name', ({ rule }) => {
    expect(files.flatMap((file) => rule(file))).toEqual([])
  })
})

/** A file as the rules see it. */
const file = (path: string, text: string): SourceFile => ({ path, text })

describe('the rules find', () => {
  test('every way to name a module, and none in a comment', () => {
    const text = [
      "import a from 'a'",
      "import type { B } from 'b'",
      "import {\n  c,\n  type D,\n} from 'c'",
      "import 'd'",
      "export { e } from 'e'",
      "export * from 'f'",
      "const g = await import('g')",
      "// import x from 'x'",
      "/* import y from 'y'\n*/",
      'const z = "// not a comment"; import(\'h\')',
    ].join('\n')
    expect(specifiers(text).toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  })

  test.each([
    ['packages/service/src/x.ts', "import { run } from '@sandlot/ai-agent/run'"],
    ['packages/web/src/x.tsx', "import type { Store } from '@sandlot/storage/sessions/store'"],
    ['packages/service/src/x.ts', "const m = await import('@sandlot/sandbox/sandboxes')"],
    ['packages/web/src/x.ts', "import { safeFetch } from '@sandlot/shared/node/safe-fetch'"],
    ['packages/storage/src/x.ts', "import { createSandboxes } from '@sandlot/sandbox/sandboxes'"],
    ['packages/shared/src/x.ts', "import { x } from '../../web/src/x.ts'"],
    ['packages/cli/src/x.ts', "import { x } from '@sandlot/shared'"],
    ['packages/cli/src/x.ts', "import { x } from '@sandlot/cli/y'"],
    ['packages/stray/src/x.ts', ''],
    ['mcp/flights-mcp/src/x.ts', "import { x } from '@sandlot/ai-agent/run'"],
    ['mcp/flights-mcp/src/x.ts', "import { x } from '../../mcp-kit/src/x.ts'"],
    ['packages/ai-agent/src/x.ts', "import { x } from '@sandlot/mcp-kit/x'"],
  ])('a wrong direction: %s %s', (path, text) => expect(directionProblems(file(path, text))).toHaveLength(1))

  test.each([
    ['packages/storage/src/x.ts', "import type { SandboxLedger } from '@sandlot/sandbox/ledger'"],
    ['packages/ai-agent/src/x.ts', "import { y } from './y/../z.ts'"],
    ['packages/ai-agent/test/x.test.ts', "import { x } from '@sandlot/service/x'"],
  ])('no wrong direction: %s %s', (path, text) => expect(directionProblems(file(path, text))).toEqual([]))

  test.each(["import { x } from 'node:fs'", "import { safeFetch } from './node/safe-fetch.ts'"])(
    'Node in what the page may import of shared: %s',
    (text) => {
      expect(nodeEntryProblems(file('packages/shared/src/x.ts', text))).toHaveLength(1)
      expect(nodeEntryProblems(file('packages/shared/src/node/x.ts', text))).toEqual([])
    },
  )

  test.each([
    ['packages/ai-agent/src/loop.ts', "import OpenAI from 'openai'"],
    ['packages/cli/src/setup/engine.ts', "import Docker from 'dockerode'"],
    ['packages/service/src/chat.ts', "import { WebSocketServer } from 'ws'"],
    ['packages/service/src/chat.ts', "import { Kysely } from 'kysely'"],
    ['packages/service/src/chat.ts', "import left from 'left-pad'"],
    ['mcp/flights-mcp/src/main.ts', "import { Duffel } from '@duffel/api'"],
  ])('a vendor out of place: %s %s', (path, text) => expect(vendorProblems(file(path, text))).toHaveLength(1))

  test.each([
    ['packages/sandbox/src/backends/docker/engine.ts', "import Docker from 'dockerode'"],
    ['packages/service/src/chat-socket.ts', "import { WebSocketServer } from 'ws'"],
    ['packages/service/src/chat.ts', "import { join } from 'node:path'"],
  ])('no vendor out of place: %s %s', (path, text) => expect(vendorProblems(file(path, text))).toEqual([]))

  test.each(['const a = process.env.PORT', "const a = process['env']", 'const { env } = process'])(
    'the environment: %s',
    (text) => {
      expect(environmentProblems(file('packages/cli/src/x.ts', text))).toHaveLength(1)
      expect(environmentProblems(file('packages/cli/src/config.ts', text))).toEqual([])
      expect(environmentProblems(file('packages/cli/src/x.ts', `// ${text}`))).toEqual([])
    },
  )

  test('barrels', () => {
    expect(barrelProblems(file('packages/cli/src/index.ts', "export * from './a.ts'\n"))).toHaveLength(1)
    expect(
      barrelProblems(
        file('packages/cli/src/index.ts', "export { a } from './a.ts'\nexport type { B } from './b.ts'\n"),
      ),
    ).toHaveLength(1)
    expect(
      barrelProblems(file('packages/cli/src/x.ts', "export { a } from './a.ts'\nexport const b = 1\n")),
    ).toEqual([])
    expect(barrelProblems(file('packages/cli/src/main.ts', "import './a.ts'\n"))).toEqual([])
  })

  test('machines', () => {
    const home = `/${'toor'.split('').toReversed().join('')}/.npmrc`
    expect(machineProblems(file('docs/x.md', `first\nsee ${home}`))).toEqual([
      `docs/x.md:2: names a machine (${home.slice(0, 6)})`,
    ])
    expect(
      machineProblems(file('docs/x.md', '"$work/root/proc" and src/root/x and https://example.org/x')),
    ).toEqual([])
  })

  test('versions that are not one version', () => {
    const manifest = {
      dependencies: { a: '^1.0.0', b: '1.0.0', c: 'catalog:', d: 'workspace:*' },
      devDependencies: { e: 'latest' },
    }
    expect(versionProblems(file('package.json', JSON.stringify(manifest)))).toHaveLength(2)
  })
})
