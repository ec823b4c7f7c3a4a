import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withoutComments } from '../../../../test/import-rules.ts'
import { builtinTools } from '../../src/tools/builtin/index.ts'

const PACKAGES = join(import.meta.dirname, '../../..')

/** The tools themselves, and the demo, which is a model: models call tools by their names. */
const MAY_KNOW = /^ai-agent\/src\/(?:tools\/builtin\/|model\/demo\/)/

/** Path and name → why it may stand there. */
const RIGHTFUL: Record<string, string> = {
  // Sentences for the model, which needs the tool's name.
  'ai-agent/src/tools/background/ends.ts: read_output':
    'a command that ended says how to see what it printed',
  'ai-agent/src/tools/output/command-output.ts: read_file': 'what was lost says how to read its file',
  'ai-agent/src/tools/output/truncate-output.ts: read_file': 'what was cut says how to read the rest',
  'ai-agent/src/tools/output/truncate-output.ts: read_tool_output': 'what was cut says how to read the rest',
  'ai-agent/src/tools/output/truncate-output.ts: search_text':
    'what was cut says how to find lines of the rest',
  'ai-agent/src/tools/workspace-files.ts: list_directory': 'a directory that was to be read as a file',
  // The English word.
  'ai-agent/src/limits/error-policy.ts: stop': 'what a prompt asks for when a call fails',
  'ai-agent/src/model/finish-words.ts: stop': 'the finish of an answer',
  'ai-agent/src/model/wires/responses/answer.ts: stop': 'the finish of an answer',
  'ai-agent/src/model/model.ts: stop': 'the finish of an answer',
  'ai-agent/src/acp/parts.ts: stop': 'what a person does to their sandbox',
  'ai-agent/src/agent/sandboxes.ts: stop': 'what an operator’s program does with sandboxes',
  'ai-agent/src/acp/requests/sandbox.ts: stop': 'what a person does to their sandbox',
  'shared/src/workspace/actions.ts: stop': 'what a person does to their sandbox',
  'shared/src/workspace/sandbox.ts: stop': 'what a person does to their sandbox',
  'web/src/workspace/sandbox-panel.tsx: stop': 'what a person does to their sandbox',
  'ai-agent/src/acp/requests/overview.ts: stop': 'what an administrator does to a prompt',
  'service/src/http/admin/overview-routes.ts: stop': 'what an administrator does to a prompt',
  'shared/src/acp/meta.ts: stop': 'what an administrator does to a prompt',
  'shared/src/admin/actions.ts: stop': 'what an administrator does to a sandbox',
  'shared/src/admin/sandboxes.ts: stop': 'what an administrator does to a sandbox',
  'web/src/settings/sandboxes/sandboxes.tsx: stop': 'what an administrator does to a sandbox',
  'shared/src/chat/sandlot-event.ts: stop': 'what a prompt asks for when a call fails',
  'web/src/chat/chat-page.tsx: stop': 'the shortcut that stops a prompt',
  'web/src/chat/composer/composer.tsx: stop': 'the button that stops a prompt',
  'web/src/lib/shortcuts.ts: stop': 'the shortcut that stops a prompt',
  'web/src/app/actions.ts: stop': 'the shortcut that stops a prompt',
  'web/src/settings/settings-page.tsx: stop': 'the shortcut that leaves the settings',
  // A person's own command is the same as the tool's.
  'ai-agent/src/workspace/exec.ts: run_shell_command': 'what POST /api/exec runs, judges and logs as',
  // An example of what is typed.
  'web/src/settings/people/tool-settings.tsx: run_shell_command': 'an example of a tool’s id',
}

function sources(folder: string): string[] {
  return readdirSync(join(PACKAGES, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(folder, path))
    .filter((path) => !MAY_KNOW.test(path))
}

/** A name that is a word of its own only as a value that something is compared with or chosen by, any other wherever it stands. */
function mentions(code: string, name: string): boolean {
  return new RegExp(name.includes('_') ? `\\b${name}\\b` : `['"\`]${name}['"\`]`).test(code)
}

test('no tool is known by its name to anything but itself', () => {
  const names = builtinTools().map(({ name }) => name)
  const paths = ['ai-agent/src', 'service/src', 'web/src', 'shared/src'].flatMap(sources)
  expect(names.length).toBeGreaterThan(10)
  expect(paths).toContain('ai-agent/src/tools/sandbox-command/sandboxed-tool-executor.ts')
  expect(paths.length).toBeGreaterThan(300)
  const known = paths.flatMap((path) => {
    const code = withoutComments(readFileSync(join(PACKAGES, path), 'utf8'))
    return names.filter((name) => mentions(code, name)).map((name) => `${path}: ${name}`)
  })
  // Both ways: an exception that nothing needs any more goes.
  expect(known.toSorted()).toEqual(Object.keys(RIGHTFUL).toSorted())
})
