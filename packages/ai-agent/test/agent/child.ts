/** A process with a watchdog of a short limit. Its only thread waits in a read of the pipe, and then in a loop. */
import { openSync, readSync, writeSync } from 'node:fs'
import { inStep } from '../../src/session/running-step.ts'
import { startWatchdog } from '../../src/agent/watchdog.ts'

const [folder = '', pipe = '', limitMs = ''] = process.argv.slice(2)
startWatchdog(
  folder,
  { warn: (fields, message) => process.stderr.write(`${message} ${JSON.stringify(fields)}\n`) },
  Number(limitMs),
)
const descriptor = openSync(pipe, 'r+')
setTimeout(() => {
  writeSync(1, 'reading\n')
  readSync(descriptor, Buffer.alloc(1))
  writeSync(1, 'read\n')
  // Code that resumes after an `await` does the same.
  void inStep({ sessionId: 's', promptId: 'p' }, async () => {
    await Promise.resolve()
    for (;;);
  })
}, 0)
