import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

import { testConfig } from './test/config.ts'

const common = {
  environment: 'node' as const,
  setupFiles: ['./test/setup.ts'],
}

/** A full run draws hundreds of samples where an ordinary one draws a few: what hangs is only found later. */
const patience = testConfig().full ? 30 : 1

/** With the clock ahead these are left out: they compare it with that of the kernel, for times of files, or of PostgreSQL. */
const OTHER_CLOCKS = [
  'backup/test/postgres',
  'sandbox/test/backends/local-process',
  'sandbox/test/controller/file-lock',
  'sandbox/test/sbxd/walk',
  'service/test/agent/scripted-shape',
  'service/test/chat/order',
  'service/test/chat/uploads',
  'service/test/peers/peers',
  'service/test/http/chats/chat',
  'service/test/http/chats/images',
  'storage/test/database/database',
].map((name) => `packages/${name}.test.ts`)
const leftOut = process.env['FAKETIME'] === undefined ? [] : OTHER_CLOCKS

/** A file of these waits half of its time, for the engine or for a page: three at a time, of either project. */
const together = { maxWorkers: 3, sequence: { groupOrder: 1 } }

/** `unit` needs nothing; `engine` needs a Docker engine and the sandbox image, or runs whole processes; `e2e` also needs Chromium and a build; `cluster` runs under `test/cluster/run.ts`. */
export default defineConfig({
  // Node adds `import` or `require` itself, by how a module is asked for: given here, a `require` inside a library got its ES module.
  resolve: { conditions: ['sandlot-source', 'module', 'node'] },
  ssr: { resolve: { conditions: ['sandlot-source', 'module', 'node'] } },
  test: {
    projects: [
      {
        extends: true,
        test: {
          ...common,
          name: 'unit',
          include: [
            'packages/*/test/**/*.test.ts',
            'packages/*/test/**/*.test.tsx',
            'mcp/*/test/**/*.test.ts',
            'test/**/*.test.ts',
          ],
          exclude: [
            '**/*.engine.test.ts',
            '**/*.e2e.test.ts',
            '**/*.cluster.test.ts',
            '**/node_modules/**',
            ...leftOut,
          ],
          testTimeout: 60_000 * patience,
          hookTimeout: 120_000,
          // One more than there are cores: some of the tests wait.
          maxWorkers: availableParallelism() + 1,
          // A worker loads each module once: loading them again for every file took a third of the CPU time.
          isolate: false,
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: 'engine',
          include: ['packages/*/test/**/*.engine.test.ts', 'test/**/*.engine.test.ts'],
          testTimeout: 120_000 * patience,
          hookTimeout: 120_000,
          ...together,
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: 'e2e',
          include: ['packages/*/test/**/*.e2e.test.ts', 'test/**/*.e2e.test.ts'],
          testTimeout: 120_000 * patience,
          hookTimeout: 180_000,
          ...together,
        },
      },
      {
        extends: true,
        test: {
          ...common,
          name: 'cluster',
          include: ['packages/*/test/**/*.cluster.test.ts', 'test/**/*.cluster.test.ts'],
          testTimeout: 180_000 * patience,
          hookTimeout: 180_000,
          // They break parts of one cluster.
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
