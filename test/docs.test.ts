import { existsSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { envExample, settingsReference, withSettings, withVariables } from './configuration-docs.ts'
import { alertRules, grafanaDashboard, withMetrics } from './observability-docs.ts'
import { openApi } from '../packages/service/test/support/openapi.ts'
import { read, repositoryFiles, ROOT } from './source-files.ts'
import { toolReference } from './tool-docs.ts'

const HOW = 'Run: node --conditions=sandlot-source test/write-docs.ts'

test('docs/settings.md and .env.example list every setting, the README the common ones, compose those of each process', () => {
  const readme = read('README.md').text
  expect(withSettings(readme), HOW).toBe(readme)
  expect(read('docs/settings.md').text, HOW).toBe(settingsReference())
  expect(read('.env.example').text, HOW).toBe(envExample())
  const compose = read('docker/compose.yaml').text
  expect(withVariables(compose), HOW).toBe(compose)
})

test('the reference of the tools is that of the tools', () => {
  expect(read('docs/tools.md').text, HOW).toBe(toolReference())
})

test('the OpenAPI document is that of the actions', () => {
  expect(read('docs/openapi.json').text, HOW).toBe(openApi())
})

test('the dashboard, the alert rules and the table of metrics are those of the metrics', () => {
  const watching = read('docs/watching.md').text
  expect(withMetrics(watching), HOW).toBe(watching)
  expect(read('docker/observability/grafana-dashboard.json').text, HOW).toBe(grafanaDashboard())
  expect(read('docker/observability/alert-rules.yaml').text, HOW).toBe(alertRules())
})

test('no document points at a file that is not there', () => {
  const broken = repositoryFiles()
    .filter((path) => path.endsWith('.md'))
    .flatMap((path) =>
      [...read(path).text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)]
        .map((match) => match[1] ?? '')
        .filter((target) => !/^[a-z]+:/.test(target))
        .filter((target) => !existsSync(join(ROOT, normalize(join(dirname(path), target)))))
        .map((target) => `${path} → ${target}`),
    )
  expect(broken).toEqual([])
})

test('no document links to a heading that is not there', () => {
  const documents = repositoryFiles().filter((path) => path.endsWith('.md'))
  const broken = documents.flatMap((path) =>
    [...withoutCode(read(path).text).matchAll(/\]\(([^)\s#]*)#([^)\s]+)\)/g)]
      .map((match) => ({ target: match[1] ?? '', heading: match[2] ?? '' }))
      .filter(({ target }) => !/^[a-z]+:/.test(target))
      .map((link) => ({
        ...link,
        file: link.target === '' ? path : normalize(join(dirname(path), link.target)),
      }))
      .filter(({ file }) => file.endsWith('.md') && existsSync(join(ROOT, file)))
      .filter(({ file, heading }) => !headingIds(read(file).text).includes(heading))
      .map(({ target, heading }) => `${path} → ${target}#${heading}`),
  )
  expect(broken).toEqual([])
})

test('no document names a command that there is not', async () => {
  const { COMMANDS } = await import('../packages/cli/src/commands.ts')
  const known = [...Object.keys(COMMANDS), 'help']
  const named = ['README.md', 'AGENTS.md', 'docs/architecture.md'].flatMap((path) =>
    [...read(path).text.matchAll(/\.\/sandlot ([a-z-]+)/g)].map((match) => match[1] ?? ''),
  )
  expect(named.filter((name) => !known.includes(name))).toEqual([])
  expect(named).toEqual(expect.arrayContaining(['up', 'test']))
})

function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^```[\s\S]*?^```/gm, '')
}

/** The ids that GitHub gives to headings. */
function headingIds(markdown: string): string[] {
  return [...withoutCode(markdown).matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? '')
      .toLowerCase()
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )
}
