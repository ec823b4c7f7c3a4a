/** Write the generated files: `node --conditions=sandlot-source test/write-docs.ts` after a change of settings, tools, actions or metrics. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { envExample, settingsReference, withSettings, withVariables } from './configuration-docs.ts'
import { alertRules, grafanaDashboard, withMetrics } from './observability-docs.ts'
import { ROOT } from './source-files.ts'
import { pageRoutes } from './page-routes.ts'
import { openApi } from '../packages/service/test/support/openapi.ts'
import { toolReference } from './tool-docs.ts'

function rewrite(path: string, write: (text: string) => string): void {
  writeFileSync(join(ROOT, path), write(readFileSync(join(ROOT, path), 'utf8')))
}

rewrite('README.md', withSettings)
rewrite('docker/compose.yaml', withVariables)
rewrite('docs/watching.md', withMetrics)
writeFileSync(join(ROOT, 'docs/settings.md'), settingsReference())
writeFileSync(join(ROOT, '.env.example'), envExample())
writeFileSync(join(ROOT, 'docs/tools.md'), toolReference())
writeFileSync(join(ROOT, 'docs/openapi.json'), openApi())
writeFileSync(join(ROOT, 'packages/web/src/net/routes.ts'), pageRoutes())
writeFileSync(join(ROOT, 'docker/observability/grafana-dashboard.json'), grafanaDashboard())
writeFileSync(join(ROOT, 'docker/observability/alert-rules.yaml'), alertRules())
