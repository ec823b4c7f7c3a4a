/**
 * The clever simple way: one resident shell by `docker exec -i`, and a word in its output that says
 * "that was it".
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface SentinelShell extends Disposable {
  run(command: string): Promise<void>
}

export async function openSentinelShell(container: string): Promise<SentinelShell> {
  const shell = spawn('docker', ['exec', '-i', container, 'bash'], { stdio: ['pipe', 'pipe', 'ignore'] })
  await once(shell, 'spawn')
  let rest = ''
  let count = 0
  return {
    async run(command) {
      const sentinel = `sentinel-${count++}`
      shell.stdin.write(`${command}\necho ${sentinel} $?\n`)
      while (!rest.includes(`${sentinel} `) || !rest.endsWith('\n')) {
        const [chunk] = (await once(shell.stdout, 'data')) as [Buffer]
        rest += chunk.toString()
      }
      const code = rest.slice(rest.indexOf(sentinel) + sentinel.length).trim()
      rest = ''
      if (code !== '0') throw new Error(`ended with ${code}`)
    },
    [Symbol.dispose]() {
      shell.stdin.end()
      shell.kill()
    },
  }
}
