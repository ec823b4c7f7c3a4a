/** A new key for people's secrets, cut off wherever it can be. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { lockFile } from '@sandlot/storage/database/lock'
import type { SecretRows } from '@sandlot/storage/people/secrets'
import { openSessionStore } from '@sandlot/storage/store/open'
import fc from 'fast-check'
import { beforeEach, expect, test } from 'vitest'
import { extent, sample } from '../../../../test/campaign.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'
import { rotateKeys, sealingKeys } from '../../src/people/sealing-keys.ts'
import { UserSecrets } from '../../src/people/user-secrets.ts'
import { createVault } from '../../src/people/vault.ts'
import { testFolder } from '../../../../test/folders.ts'

const program = join(import.meta.dirname, '../../src/agent/keys.ts')
const SECRETS = 6
/** The key, each secret, and the end of the old key. */
const STEPS = SECRETS + 2

let folder: string
let deploymentKey: Uint8Array
beforeEach(() => {
  folder = testFolder('rotate')
  deploymentKey = deploymentKeys(join(folder, 'keys')).key
})

const withStored = async <T>(work: (rows: SecretRows) => Promise<T>): Promise<T> => {
  const store = await openSessionStore(join(folder, 'sessions.db'))
  try {
    return await work(store.people.secrets)
  } finally {
    await store.close()
  }
}
/** The secrets of an agent that starts now. */
const secretsOf = (rows: SecretRows): UserSecrets => {
  const vault = createVault(sealingKeys(join(folder, 'keys'), deploymentKey))
  return new UserSecrets({ rows, vault, redact: () => {}, now: () => 7 })
}
const fill = async (rows: SecretRows): Promise<void> => {
  for (let n = 0; n < SECRETS; n++) await secretsOf(rows).set(`u${n % 2}`, `S${n}`, `value ${n}`)
}
const readAll = async (rows: SecretRows): Promise<void> => {
  for (let n = 0; n < SECRETS; n++) expect(await secretsOf(rows).get(`u${n % 2}`, `S${n}`)).toBe(`value ${n}`)
}
/** So many steps, then nothing more, as when the power goes. */
async function rotateFor(steps: number, rows: SecretRows): Promise<void> {
  const rotating = rotateKeys(join(folder, 'keys'), deploymentKey, rows)
  for (let n = 0; n < steps; n++) if ((await rotating.next()).done === true) return
}

test('cut off after any steps, any number of times: every secret can be read, also by an agent that goes on writing', async () => {
  await withStored(async (rows) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: STEPS }), { maxLength: 4 }), async (cuts) => {
        rmSync(join(folder, 'keys', 'secrets.json'), { force: true })
        await fill(rows)
        for (const steps of cuts) {
          await rotateFor(steps, rows)
          // The result of a torn write of the key file.
          writeFileSync(join(folder, 'keys', 'secrets.json.new'), '{"keys":["AA')
          await readAll(rows)
          await secretsOf(rows).set('u1', 'S1', 'value 1')
        }
        const before = sealingKeys(join(folder, 'keys'), deploymentKey)
        await rotateFor(Infinity, rows)
        await readAll(rows)
        const after = sealingKeys(join(folder, 'keys'), deploymentKey)
        expect(after).toHaveLength(1)
        expect(await rows.sealedOtherwise(createVault(after).keyId, 10)).toEqual([])
        // An interrupted rotation is completed, not restarted.
        expect(Buffer.from(after[0]).equals(Buffer.from(before[0]))).toBe(before.length > 1)
      }),
      { numRuns: extent(15, 300), examples: Array.from({ length: STEPS + 1 }, (_, n) => [[n]]) },
    )
  })
})

test('the key is really another one, its file is its owner’s, and one that no key opens is named and stays', async () => {
  await withStored(async (rows) => {
    await fill(rows)
    const stranger = createVault([new Uint8Array(32).fill(9)])
    const sealed = stranger.seal({ userId: 'u0', name: 'LOST' }, 'x')
    await rows.put('u0', { name: 'LOST', keyId: stranger.keyId, sealed, updatedAt: 1 })
    const rotating = rotateKeys(join(folder, 'keys'), deploymentKey, rows)
    let next = await rotating.next()
    while (next.done !== true) next = await rotating.next()
    expect(next.value).toEqual({ resealed: SECRETS, lost: ['u0/LOST'] })
    expect(sealingKeys(join(folder, 'keys'), deploymentKey)).not.toContainEqual(deploymentKey)
    expect((await rows.get('u0', 'LOST'))?.keyId).toBe(stranger.keyId)
    expect(statSync(join(folder, 'keys', 'secrets.json')).mode & 0o777).toBe(0o600)
    expect(readdirSync(join(folder, 'keys')).toSorted()).toEqual(['deployment.json', 'secrets.json'])
  })
})

test('a damaged file of keys stops everything, and is not replaced', async () => {
  for (const damaged of ['', '{"keys":[]}', '{"keys":["AAAA"]}', 'x']) {
    writeFileSync(join(folder, 'keys', 'secrets.json'), damaged)
    expect(() => sealingKeys(join(folder, 'keys'), deploymentKey)).toThrow(/damaged/)
    await expect(withStored((rows) => rotateFor(1, rows))).rejects.toThrow(/damaged/)
    expect(readFileSync(join(folder, 'keys', 'secrets.json'), 'utf8')).toBe(damaged)
  }
})

const start = () =>
  spawn(process.execPath, ['--conditions=sandlot-source', program, 'rotate'], {
    env: { PATH: process.env['PATH'], SANDLOT_DATA: folder },
  })
const steps = Array.from({ length: STEPS }, (_, n) => n + 1)

test.each(sample('key rotation', steps, 1))(
  'the program killed at step %i: every secret can be read; begun again, it ends',
  async (step) => {
    await withStored(fill)
    const child = start()
    let seen = 0
    for await (const line of createInterface({ input: child.stderr })) {
      expect(line).toMatch(/^(key_written|resealed|old_keys_gone)$/)
      if (++seen === step) child.kill('SIGKILL')
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    await withStored(readAll)
    await withStored((rows) => rotateFor(Infinity, rows))
    await withStored(readAll)
    expect(sealingKeys(join(folder, 'keys'), deploymentKey)).toHaveLength(1)
  },
  60_000,
)

test('beside a running agent nothing is done, and the answer says so', async () => {
  mkdirSync(join(folder, 'run'))
  const lock = lockFile(join(folder, 'run', 'agent.lock'))
  const child = start()
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect(JSON.parse(said)).toEqual({ rotated: false, reason: 'running', folder })
  expect(child.exitCode).toBe(3)
  expect(sealingKeys(join(folder, 'keys'), deploymentKey)).toEqual([deploymentKey])
  // Its file has one writer.
  expect(existsSync(join(folder, 'sessions.db'))).toBe(false)
  lock?.release()
}, 60_000)

test('beside one of several agents nothing is done, and the answer names it', async () => {
  const run = join(folder, 'replicas', 'host-2', 'run')
  mkdirSync(run, { recursive: true })
  const lock = lockFile(join(run, 'agent.lock'))
  const child = start()
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect(JSON.parse(said)).toEqual({ rotated: false, reason: 'running', folder, agents: ['host-2'] })
  expect(sealingKeys(join(folder, 'keys'), deploymentKey)).toEqual([deploymentKey])
  lock?.release()
}, 60_000)

test('where no keys are, none are made, and the answer says where they were looked for', async () => {
  rmSync(join(folder, 'keys'), { recursive: true })
  const child = start()
  const [said] = await Promise.all([text(child.stdout), once(child, 'exit')])
  expect(JSON.parse(said)).toEqual({ rotated: false, reason: 'no_deployment', folder })
  expect(child.exitCode).toBe(3)
  expect(readdirSync(folder)).toEqual([])
}, 60_000)
