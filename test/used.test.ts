import { expect, test } from 'vitest'
import { exceptionProblems } from './exceptions.ts'
import { read, repositoryFiles } from './source-files.ts'
import { usedProblems } from './used.ts'

const PROGRAM = 'programs import it'
const FAKE = 'a fake that is shipped for tests of programs'
const CASES = 'a table of cases of its own; through what uses it only a few of them could be made'
const PLAYED = 'tests play the other side of a protocol with it'
const PARTS = 'the real part whose failures or places in time a test needs, without the process round it'
const ENVIRONMENT = 'reads the environment; tests give it another one'
const KNOWN = 'tests tell by it what they are asked, or what holds without their change'

const RULES = {
  entries: {
    'packages/ai-agent/src/plain/run-agent.ts': PROGRAM,
    'packages/ai-agent/src/plain/log-store.ts': PROGRAM,
    'packages/ai-agent/src/plain/plain-tool.ts': PROGRAM,
    'packages/ai-agent/src/plain/inbox.ts': PROGRAM,
    'packages/ai-agent/src/model/http-model.ts': PROGRAM,
    'packages/ai-agent/src/model/model.ts': PROGRAM,
    'packages/ai-agent/src/session/manager.ts': PROGRAM,
    'packages/storage/src/database/changes.ts': PROGRAM,
    'packages/storage/src/replicas/replicas.ts': PROGRAM,
    'packages/sandbox/src/controller/sandboxes.ts': PROGRAM,
    'packages/sandbox/src/controller/file-ledger.ts': PROGRAM,
    'packages/sandbox/src/sandbox.ts': PROGRAM,
    'packages/sandbox/src/files.ts': PROGRAM,
    'packages/sandbox/src/backend.ts': PROGRAM,
    'packages/sandbox/src/errors.ts': PROGRAM,
    'packages/sandbox/src/sbxd/collect.ts': PROGRAM,
    'packages/sandbox/src/backends/docker/backend.ts': PROGRAM,
    'packages/sandbox/src/backends/fake.ts': FAKE,
    'packages/cli/src/testing/reporter.ts': 'vitest loads it by its path',
    'packages/web/src/markdown/without-serializing.ts': 'the build puts it in place of a library',
  },
  allowed: {
    'packages/ai-agent/src/acp/socket.ts webSocketStream': PLAYED,
    'packages/ai-agent/src/people/sealing-keys.ts writeSealingKeys': PARTS,
    'packages/sandbox/src/egress/policy.ts readAddressList': CASES,
    'packages/sandbox/src/sbxd/protocol/frames.ts crc32c': CASES,
    'packages/ai-agent/src/acp/session-pump.ts batches': CASES,
    'packages/ai-agent/src/mcp/connection.ts createIdleClock': PARTS,
    'packages/ai-agent/src/mcp/server.ts createBackoff': CASES,
    'packages/ai-agent/src/mcp/transports/stdio.ts createLineReader': CASES,
    'packages/ai-agent/src/mcp/transports/stdio.ts createMessagePace': PARTS,
    'packages/ai-agent/src/config/user-settings.ts settingsSeeds': PARTS,
    'packages/ai-agent/src/model/transport.ts transportError': CASES,
    'packages/ai-agent/src/tools/registry.ts ToolDefinitionError': PROGRAM,
    'packages/cli/src/commands/keys.ts reportResult': CASES,
    'packages/cli/src/commands/people.ts resultLines': CASES,
    'packages/cli/src/commands/sandbox.ts table': CASES,
    'packages/cli/src/commands/tools.ts toolTable': CASES,
    'packages/cli/src/config.ts otherSettings': ENVIRONMENT,
    'packages/cli/src/config.ts parseCliConfig': ENVIRONMENT,
    'packages/cli/src/processes/process-mark.ts parseStat': CASES,
    'packages/cli/src/checks/sandbox-checks.ts gate': PARTS,
    'packages/cli/src/processes/supervise.ts backoff': CASES,
    'packages/cli/src/testing/leftovers.ts testOwned': CASES,
    'packages/engine-gate/src/gate.ts answers': PARTS,
    'packages/sandbox/src/backends/docker/stream.ts DockerStreamSplitter': CASES,
    'packages/sandbox/src/controller/empty-workspace.ts emptyWorkspace': PARTS,
    'packages/sandbox/src/doctor/engine.ts architecture': CASES,
    'packages/sandbox/src/doctor/host.ts judgeSetting': CASES,
    'packages/sandbox/src/doctor/host.ts judgeRoom': CASES,
    'packages/sandbox/src/controller/proof.ts requireProof': PARTS,
    'packages/sandbox/src/doctor/versions.ts hasFix': CASES,
    'packages/sandbox/src/sbxd/protocol/frames.ts encodeOutwardFrame': PLAYED,
    'packages/service/src/auth/limits.ts DEFAULT_RATES': KNOWN,
    'packages/shared/src/chat/frames.ts serverFrame': PLAYED,
    'packages/storage/src/database/free-bytes.ts logBytes': PARTS,
    'packages/web/src/chat/composer/drafts.ts draftOf': PARTS,
    'packages/web/src/lib/storage.ts memoryStorage': PARTS,
    'packages/web/src/terminal/palette.ts inkOn': CASES,
  },
}

test('every exported name has a user', () => {
  const files = repositoryFiles()
    .filter((path) => /\.(tsx?|mjs)$|\/package\.json$/.test(path))
    .map(read)
  expect(usedProblems(files, RULES)).toEqual([])
})

test('no package has many exceptions', () => {
  const packageOf = (key: string): string => key.split('/', 2).join('/')
  for (const list of Object.values(RULES))
    expect(exceptionProblems(Object.keys(list).map(packageOf))).toEqual([])
  expect(exceptionProblems(Array.from({ length: 10 }, () => 'a'))).toEqual([])
  expect(exceptionProblems(Array.from({ length: 11 }, () => 'a'))).toEqual([
    expect.stringContaining('a: 11 exceptions'),
  ])
})

test('says which name has none, and which line of the rules nothing needs', () => {
  const files = [
    {
      path: 'packages/a/package.json',
      text: '{"name":"@sandlot/a","exports":{"./*":{"sandlot-source":"./src/*.ts"}}}',
    },
    {
      path: 'packages/a/src/one.ts',
      text: 'export const two = 2\nexport function three() {}\nexport interface Four {}',
    },
    { path: 'packages/b/src/user.ts', text: "import { two as zwei } from '@sandlot/a/one'\n// three" },
    { path: 'packages/a/test/one.test.ts', text: "import { three, type Four } from '../src/one.ts'" },
  ]
  const rules = { entries: { 'packages/a/src/gone.ts': 'x' }, allowed: { 'packages/a/src/one.ts Four': 'x' } }
  expect(usedProblems(files, rules)).toEqual([
    expect.stringMatching(/^packages\/a\/src\/one\.ts three: .*export away/) as string,
    expect.stringContaining('packages/a/src/gone.ts: nothing needs this line') as string,
  ])
})
