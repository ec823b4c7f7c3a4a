/** Commands that run through a failure, followed over every lost stream as an agent follows them. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import { expect } from 'vitest'

import type { Sandboxes } from '../../../src/controller/sandboxes.ts'
import { SandboxError } from '../../../src/errors.ts'
import type { RunningCommand, Sandbox } from '../../../src/sandbox.ts'
import { numberedHash, Receipt, timesRun } from '../numbered.ts'
import { say } from '../say.ts'

const LINES = 1_000
const PIECES = 160
const BYTES = LINES * PIECES * 16
const PRINTING = `echo ran >>runs; for n in $(seq 0 ${PIECES - 1}); do seq -f '%015.0f' $((n * ${LINES} + 1)) $((n * ${LINES} + ${LINES})); sleep 0.05; done`

/** Failures after which an agent tries again, as its `PASSING`. */
const PASSING = new Set(['engine_unavailable', 'sandbox_lost', 'timeout', 'fenced'])

/**
 * Follows a command that was started in this boot to its end, over lost streams. Rejects with the
 * `SandboxError` for which an agent gives up, or when another boot has come.
 */
async function follow(
  controller: Sandboxes,
  first: Sandbox,
  command: { id: string; text: string },
  receipt: Receipt,
): Promise<void> {
  const deadline = performance.now() + 120_000
  for (;;) {
    try {
      const sandbox = await controller.acquire('ann')
      if (sandbox.bootId !== first.bootId) throw sandbox.endedBefore ?? new Error('another boot has come')
      await receipt.read(await again(sandbox, command, receipt))
      return
    } catch (error) {
      const passing = error instanceof SandboxError && PASSING.has(error.code) && isNoEnd(error)
      if (!passing || performance.now() > deadline) throw error
      await sleep(50)
    }
  }
}

/** The words of the end of a Pod say that the files are kept; those of a lost stream do not. */
const isNoEnd = ({ message }: SandboxError): boolean => !message.includes('files are kept')

async function again(
  sandbox: Sandbox,
  { id, text }: { id: string; text: string },
  receipt: Receipt,
): Promise<RunningCommand> {
  const found = await sandbox.attach(id, { stdout: receipt.bytes })
  if (found !== undefined) return found
  if (receipt.bytes > 0) throw new Error('the command is gone')
  return sandbox.run({ id, bootId: sandbox.bootId, command: text, merge: true })
}

export interface Victims {
  /** Resolves when the numbered output prints. */
  printing: Promise<void>
  /** Ends the short commands, and verifies that nothing was lost and nothing ran twice. */
  verify(): Promise<void>
  /** The failure of the command that prints. */
  failure(): Promise<unknown>
}

/** One command that prints for eight seconds and more, and short ones in a row. */
export async function beginVictims(controller: Sandboxes): Promise<Victims> {
  const sandbox = await controller.acquire('ann')
  const newId = (): string => randomBytes(16).toString('hex')
  const receipt = new Receipt()
  const long = follow(controller, sandbox, { id: newId(), text: PRINTING }, receipt)
  const over = new AbortController()
  let counted = 0
  const short = (async () => {
    for (; !over.signal.aborted; counted += 1)
      await follow(controller, sandbox, { id: newId(), text: `echo ${counted} >>counts` }, new Receipt())
  })()
  // Awaited below, whichever of them fails first.
  void Promise.allSettled([long, short])
  const { promise: printing, resolve } = Promise.withResolvers<void>()
  void (async () => {
    while (receipt.bytes === 0) await sleep(5)
    resolve()
  })()
  return {
    printing,
    failure: () =>
      long.then(
        () => undefined,
        (error: unknown) => error,
      ),
    async verify() {
      await long
      over.abort()
      await short
      const now = await controller.acquire('ann')
      expect([receipt.bytes, receipt.hash()]).toEqual([BYTES, numberedHash(BYTES)])
      expect(await timesRun(now)).toBe(1)
      const counts = await say(controller, 'cat counts')
      expect(counts.split('\n')).toEqual(Array.from({ length: counted }, (_, n) => String(n)))
      await expect.poll(() => relays(controller), { timeout: 10_000 }).toBe(1)
    },
  }
}

/** Relays that run in the sandbox. */
async function relays(controller: Sandboxes): Promise<number> {
  return Number(
    await say(controller, String.raw`cat /proc/[0-9]*/cmdline | tr '\0' '\n' | grep -cx 'rela[y]'`),
  )
}
