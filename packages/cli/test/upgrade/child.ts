/** `./sandlot up` or `upgrade` of the small clone whose folder is the first argument. */
import { up } from '../../src/commands/up.ts'
import { upgrade } from '../../src/commands/upgrade.ts'
import { parseCliConfig } from '../../src/config.ts'
import { exitCodeOf } from '../../src/exit-code.ts'
import { createSteps } from '../../src/steps.ts'

const [root = '', act, ...args] = process.argv.slice(2)
const write = (text: string): void => void process.stdout.write(text)
const command = act === 'up' ? up : upgrade
try {
  process.exitCode = await command({
    config: parseCliConfig(process.env, root),
    args,
    steps: createSteps({ live: false, write }),
    print: (line) => write(`${line}\n`),
  })
} catch (error) {
  process.exitCode = exitCodeOf(error, write)
}
