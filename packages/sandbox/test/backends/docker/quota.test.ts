/** Detection of volume sizes, over a real socket, on engines with different answers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'

import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'

import { createEngine } from '../../../src/backends/docker/engine.ts'
import { createQuotaProbe } from '../../../src/backends/docker/quota.ts'
import { createVolumes } from '../../../src/backends/docker/volumes.ts'
import { slotLabels } from '../../../src/names.ts'
import { DEFAULT_LIMITS } from '../../../src/limits.ts'
import { poolName } from '../../../src/names.ts'

const DEPLOYMENT = 'test'
const volumeSchema = z.object({
  Name: z.string(),
  Labels: z.record(z.string(), z.string()),
  DriverOpts: z.record(z.string(), z.string()).optional(),
})
type Volume = z.infer<typeof volumeSchema>

/** Answers of an engine to a volume with a size, and to its removal. */
interface Manner {
  backing?: string
  /** A refusal: status and words. */
  refuses?: [number, string]
  keeps?: boolean
}

let folder: string
let server: Server
let manner: Manner
const volumes = new Map<string, Volume>()
const made: Volume[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-quota-'))
  volumes.clear()
  made.length = 0
  server = createServer((request, response) => {
    const answer = (status: number, body?: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(body === undefined ? undefined : JSON.stringify(body))
    }
    const path = (request.url ?? '').replace(/^\/v[\d.]+/, '').replace(/\?.*/, '')
    if (path === '/_ping') return void response.setHeader('Api-Version', '1.41').end('OK')
    if (path === '/info')
      return answer(200, { DriverStatus: manner.backing ? [['Backing Filesystem', manner.backing]] : [] })
    if (path === '/volumes/create') {
      void json(request).then((body) => {
        const volume = volumeSchema.parse(body)
        made.push(volume)
        if (volume.DriverOpts?.size !== undefined && manner.refuses)
          return answer(manner.refuses[0], { message: manner.refuses[1] })
        volumes.set(volume.Name, volume)
        return answer(201, volume)
      })
      return
    }
    const name = path.replace('/volumes/', '')
    const volume = volumes.get(name)
    if (!volume) return answer(404, { message: `no such volume: ${name}` })
    if (request.method === 'GET') return answer(200, volume)
    if (manner.keeps) return answer(500, { message: 'error while removing volume: device or resource busy' })
    volumes.delete(name)
    answer(204)
  })
  await new Promise<void>((resolve) => server.listen(join(folder, 'd.sock'), resolve))
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await rm(folder, { recursive: true })
})

const engine = () => {
  const socketPath = join(folder, 'd.sock')
  return createEngine({ kind: 'unix', socketPath, shown: socketPath })
}
const slot = { slot: 'abcdefgh', uid: 30_000, volume: poolName(DEPLOYMENT, 'abcdefgh') }
const spec = {
  ...slot,
  name: slot.volume,
  image: 'none',
  limits: DEFAULT_LIMITS,
  labels: slotLabels(DEPLOYMENT, slot),
}

test('xfs with pquota: hard, asked once, nothing is left, and every volume gets its size', async () => {
  manner = { backing: 'xfs' }
  const one = engine()
  const probe = createQuotaProbe(one, DEPLOYMENT)
  expect(await Promise.all([probe(), probe(), probe()])).toEqual(['hard', 'hard', 'hard'])
  expect(made).toHaveLength(1)
  expect(volumes.size).toBe(0)
  await createVolumes(one, DEPLOYMENT, probe).ensure(spec)
  expect(made).toHaveLength(2)
  expect(volumes.get(spec.volume)).toMatchObject({
    DriverOpts: { size: String(DEFAULT_LIMITS.diskBytes) },
    Labels: spec.labels,
  })
})

test.each(['xfs', undefined])(
  'an engine on %s that refuses a size: soft, and no volume has one',
  async (backing) => {
    manner = {
      backing,
      refuses: [400, 'quota size requested but no quota support'],
    }
    const one = engine()
    const probe = createQuotaProbe(one, DEPLOYMENT)
    expect(await probe()).toBe('soft')
    await createVolumes(one, DEPLOYMENT, probe).ensure(spec)
    expect(volumes.get(spec.volume)?.DriverOpts).toBeUndefined()
  },
)

test('a file system that has no such quota is not asked', async () => {
  manner = { backing: 'extfs' }
  expect(await createQuotaProbe(engine(), DEPLOYMENT)()).toBe('soft')
  expect(made).toEqual([])
})

test('a trial volume that cannot be removed keeps no user from their sandbox', async () => {
  manner = { backing: 'xfs', keeps: true }
  expect(await createQuotaProbe(engine(), DEPLOYMENT)()).toBe('hard')
})

test('an engine that is in trouble has not said no: watched for now, and asked again', async () => {
  manner = { backing: 'xfs', refuses: [500, 'mkdir: input/output error'] }
  const probe = createQuotaProbe(engine(), DEPLOYMENT)
  expect(await probe()).toBe('soft')
  manner = { backing: 'xfs' }
  expect(await probe()).toBe('hard')
})
