import type { BackendSandbox, OpenedSandbox, SandboxBackend, SandboxProfile } from '../backend.ts'
import { SandboxError } from '../errors.ts'
import { profileOf } from '../names.ts'
import { connectSandbox, type ConnectedSandbox } from '../sbxd/client.ts'
import { KeyRefused } from '../sbxd/handshake.ts'
import { deriveSandboxKey } from './key.ts'

export interface OpeningOptions {
  backend: SandboxBackend
  deploymentKey: Uint8Array
  /** Receives what an operator must see. Default: nothing does. */
  alert?: (message: string, details: { slot: string; error: unknown }) => void
}

/** A running sandbox and an unused stream to its sbxd. */
export interface OpenSandbox extends OpenedSandbox {
  id: string
  /** Profile at creation, which a later grant does not change. */
  profile: SandboxProfile
}

/** Brings the container to running from any state, and opens a stream to its sbxd. */
export async function open(
  container: BackendSandbox,
  backend: SandboxBackend,
  signal: AbortSignal,
): Promise<OpenSandbox> {
  const { id, state } = container
  if (state === 'paused') await backend.resume(id)
  const opened = await backend.open({ id, state: state === 'paused' ? 'running' : state }, signal)
  return { ...opened, id, profile: profileOf(container) }
}

type Connection = Omit<Parameters<typeof connectSandbox>[0], 'id' | 'stream' | 'key' | 'endedBefore'>

/**
 * Connects to the sbxd of this slot's sandbox. sbxd takes the key of the first HELLO: one that
 * holds the key of someone else is removed before any command, with an alert, and this rejects
 * with `sandbox_lost`; the files stay. Otherwise rejects as `connectSandbox` does.
 */
export async function connectOpened(
  slot: string,
  { id, stream, keyId, ended }: OpenSandbox,
  { backend, deploymentKey, alert }: OpeningOptions,
  connection: Connection,
): Promise<ConnectedSandbox> {
  try {
    const key = deriveSandboxKey(deploymentKey, keyId)
    return await connectSandbox({ ...connection, id, stream, key, endedBefore: ended })
  } catch (error) {
    if (!(error instanceof KeyRefused)) throw error
    alert?.('a sandbox answered with a key of someone else, and is removed', { slot, error })
    await backend.remove(id)
    throw new SandboxError(
      'sandbox_lost',
      'The sandbox answered with a key that this deployment did not give it, so it was removed. Its files stay. Try again.',
      { cause: error },
    )
  }
}
