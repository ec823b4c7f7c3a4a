import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { Duplex } from 'node:stream'

import { describe } from 'vitest'

import type { SandboxBackend } from '../../src/backend.ts'
import { createDockerBackend } from '../../src/backends/docker/backend.ts'
import { createFileLedger } from '../../src/controller/file-ledger.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import { claimedName, ownerTag } from '../../src/names.ts'
import {
  encodeFrame,
  FrameType,
  HEADER_BYTES,
  HELLO_CRC,
  readHeader,
} from '../../src/sbxd/protocol/frames.ts'
import type { OutputChunk } from '../../src/sandbox.ts'
import { sh } from '../contract/harness.ts'
import { deployed, docker, shell, type DockerFixture } from '../support/docker-fixture.ts'

const say = async (
  fixture: DockerFixture,
  text: string,
  controller = fixture.controller(),
  user = 'ann',
): Promise<string> => (await shell(await controller.acquire(user), text)).output.trim()

describe('acquire', () => {
  deployed('a hundred at once get one container, one volume and one sandbox', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const got = await Promise.all(Array.from({ length: 100 }, () => sandboxes.acquire('ann')))
    expect(new Set(got).size).toBe(1)
    expect(await fixture.containers()).toEqual([got[0]?.id])
    expect(await fixture.volumes()).toHaveLength(1)
    expect((await shell(got[0] ?? expect.fail(), 'echo hi')).output).toBe('hi\n')
  })

  deployed(
    'different users get different containers, volumes and uids, and do not see each other',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      const users = ['ann', 'bob', 'cid']
      await Promise.all(
        users.map((user) => say(fixture, `echo ${user} > mine; touch /tmp/${user}`, sandboxes, user)),
      )
      for (const user of users)
        expect(await say(fixture, 'cat mine; ls /tmp', sandboxes, user)).toBe(`${user}\n${user}`)
      expect(await fixture.containers()).toHaveLength(3)
      const slots = await fixture.ledger.list()
      expect(new Set(slots.map((slot) => slot.uid)).size).toBe(3)
      expect(new Set(slots.map((slot) => slot.volume)).size).toBe(3)
    },
  )

  deployed('names and labels reveal the owner only with the key', async ({ fixture, expect }) => {
    const sandbox = await fixture.controller().acquire('ann')
    const slot = await fixture.ledger.find('ann')
    const name = claimedName(fixture.deployment, slot?.slot ?? '', ownerTag(fixture.deploymentKey, 'ann'), 1)
    expect(await docker('inspect', '-f', '{{.Name}}', sandbox.id)).toBe(`/${name}`)
  })

  deployed(
    'another controller, as after a restart, finds the same container, its files and its running command',
    async ({ fixture, expect }) => {
      const first = fixture.controller()
      const sandbox = await first.acquire('ann')
      const id = '0'.repeat(31) + '1'
      await shell(sandbox, 'echo kept > file')
      await sandbox.run({ id, command: 'sleep 1; echo late' })
      await first.close()

      const again = await fixture.controller().acquire('ann')
      expect(again.id).toBe(sandbox.id)
      expect(again.bootId).toBe(sandbox.bootId)
      expect((await shell(again, 'cat file')).output).toBe('kept\n')
      const command = await again.attach(id)
      let output = ''
      for await (const chunk of command?.output ?? []) output += Buffer.from(chunk.data).toString()
      expect(output).toBe('late\n')
      expect((await command?.exit)?.code).toBe(0)
    },
  )

  deployed(
    'a second controller takes over; the first is fenced and does not fight back',
    async ({ fixture, expect }) => {
      const old = await fixture.controller().acquire('ann')
      const second = fixture.controller()
      expect((await second.acquire('ann')).id).toBe(old.id)
      await expect(shell(old, 'echo mine')).rejects.toMatchObject({ name: 'SandboxError' })
      // A frame that the first sent before it knew may cost the second its connection, once.
      await expect.poll(() => say(fixture, 'echo mine', second).catch(String)).toBe('mine')
      expect(await say(fixture, 'echo still mine', second)).toBe('still mine')
    },
  )

  deployed('a caller that stops waiting is released, and the others get it', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const impatient = sandboxes.acquire('ann', AbortSignal.timeout(1))
    const patient = sandboxes.acquire('ann')
    await expect(impatient).rejects.toMatchObject({ code: 'cancelled' })
    expect((await patient).id).toHaveLength(64)
    await expect(sandboxes.acquire('ann', AbortSignal.abort())).resolves.toBe(await patient)
  })

  for (const user of ['', 'x'.repeat(257)])
    deployed(`a user id of ${user.length} characters is refused`, async ({ fixture, expect }) => {
      await expect(fixture.controller().acquire(user)).rejects.toMatchObject({ code: 'invalid_arguments' })
    })
})

/** The same backend, whose sbxd in this container gets every HELLO in another version. */
function ofAnotherVersion(backend: SandboxBackend, id: string): SandboxBackend {
  return {
    ...backend,
    async open(sandbox, signal) {
      const opened = await backend.open(sandbox, signal)
      return sandbox.id === id ? { ...opened, stream: inAnotherVersion(opened.stream) } : opened
    },
  }
}

function inAnotherVersion(inner: Duplex): Duplex {
  const outer = new Duplex({
    read: () => {},
    write(piece: Buffer, _encoding, done) {
      const header = piece.length > HEADER_BYTES ? readHeader(piece) : undefined
      if (header?.type !== FrameType.HELLO) return void inner.write(piece, () => done())
      const payload = Buffer.from(piece.subarray(HEADER_BYTES, HEADER_BYTES + header.length))
      payload.writeUInt16LE(payload.readUInt16LE(0) + 1, 0)
      inner.write(encodeFrame(header.type, header.flags, 0, payload, HELLO_CRC), () => done())
    },
    destroy(error, done) {
      inner.destroy()
      done(error)
    },
  })
  inner.on('data', (piece: Buffer) => outer.push(piece)).on('close', () => outer.destroy())
  return outer
}

describe('a stream that drops while the container runs', () => {
  /** The same backend, with a hand on the streams it opens. */
  function cuttable(fixture: DockerFixture) {
    const streams: Duplex[] = []
    const backend: SandboxBackend = {
      ...fixture.backend,
      open: async (sandbox, signal) => {
        const opened = await fixture.backend.open(sandbox, signal)
        streams.push(opened.stream)
        return opened
      },
    }
    return { controller: fixture.controller({ backend }), cut: () => streams.at(-1)?.destroy(), streams }
  }

  deployed('is opened again without a call', async ({ fixture, expect }) => {
    const { controller, cut, streams } = cuttable(fixture)
    const before = await controller.acquire('ann')
    cut()
    await expect.poll(() => streams.length, { timeout: 10_000 }).toBe(2)
    await expect.poll(async () => (await controller.status('ann')).connected).toBe(true)
    const after = await controller.acquire('ann')
    expect(after).not.toBe(before)
    expect(after.bootId).toBe(before.bootId)
  })

  deployed(
    'costs a running command nothing: its output goes on where it was',
    async ({ fixture, expect }) => {
      const { controller, cut } = cuttable(fixture)
      const id = 'd'.repeat(32)
      const first = await (
        await controller.acquire('ann')
      ).run({ id, command: 'seq 1 200000; sleep 0.5; echo end' })
      const lost = expect(first.exit).rejects.toMatchObject({ code: 'sandbox_lost' })
      let text = ''
      const read = async (chunks: AsyncIterable<OutputChunk>, until: () => boolean): Promise<void> => {
        for await (const chunk of chunks) {
          text += Buffer.from(chunk.data).toString()
          if (until()) return
        }
      }
      await read(first.output, () => text.length > 100_000)
      cut()
      await lost
      const again = await (await controller.acquire('ann')).attach(id, { stdout: text.length })
      again?.acknowledge({ stdout: text.length })
      await read(
        (async function* acknowledging() {
          for await (const chunk of again?.output ?? []) {
            yield chunk
            again?.acknowledge({ stdout: chunk.offset + chunk.data.length })
          }
        })(),
        () => false,
      )
      expect((await again?.exit)?.code).toBe(0)
      const all = `${Array.from({ length: 200_000 }, (_, n) => `${n + 1}\n`).join('')}end\n`
      expect(text.length).toBe(all.length)
      expect(text === all).toBe(true)
    },
  )
})

describe('a container changed by someone else', () => {
  deployed('removed: the next acquire makes another round the same files', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const before = await sandboxes.acquire('ann')
    await shell(before, 'echo kept > file')
    await docker('rm', '-f', before.id)
    expect(await say(fixture, 'cat file', sandboxes)).toBe('kept')
    expect((await sandboxes.status('ann')).id).not.toBe(before.id)
    expect(await fixture.volumes()).toHaveLength(1)
  })

  deployed('killed, stopped: it is started again', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const { id, bootId } = await sandboxes.acquire('ann')
    await docker('kill', id)
    expect(await say(fixture, 'echo one', sandboxes)).toBe('one')
    await docker('stop', id)
    expect(await say(fixture, 'echo two', sandboxes)).toBe('two')
    const now = await sandboxes.acquire('ann')
    expect(now.id).toBe(id)
    expect(now.bootId).not.toBe(bootId)
  })

  deployed('paused: another controller resumes it', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const { id } = await sandboxes.acquire('ann')
    await sandboxes.close()
    await docker('pause', id)
    expect(await say(fixture, 'echo awake')).toBe('awake')
  })

  deployed('a running command whose container is removed ends as lost', async ({ fixture, expect }) => {
    const sandbox = await fixture.controller().acquire('ann')
    const command = await sandbox.run({ id: 'b'.repeat(32), command: 'sleep 300' })
    const exit = expect(command.exit).rejects.toMatchObject({ code: 'sandbox_lost' })
    await docker('rm', '-f', sandbox.id)
    await exit
  })
})

describe('what is kept', () => {
  deployed(
    'a ledger that was lost: the engine still knows whose the files are',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      await say(fixture, 'echo kept > file', sandboxes)
      const before = await fixture.ledger.find('ann')
      await sandboxes.close()
      const empty = createFileLedger(join(fixture.folder, 'other', 'ledger.json'))
      const again = fixture.controller({ ledger: empty })
      expect(await say(fixture, 'cat file', again)).toBe('kept')
      expect(await empty.find('ann')).toMatchObject({
        slot: before?.slot,
        uid: before?.uid,
        volume: before?.volume,
      })
    },
  )

  deployed(
    'a new image: a running sandbox stays, a stopped one moves with its files',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      const before = await sandboxes.acquire('ann')
      await sh(before, 'mkdir -p a/b; cd a/b; echo kept > file; export A=1', { session: 'one' })
      await sandboxes.close()
      // Any difference of the spec counts: a smaller memory limit stands for another image.
      const limits = {
        memoryBytes: 3 * 2 ** 30,
        cpus: 1,
        pids: 256,
        tmpBytes: 2 ** 26,
        diskBytes: 2 ** 32,
        openFiles: 2048,
      }
      const changed = fixture.controller({ limits })
      expect((await changed.acquire('ann')).id).toBe(before.id)
      await changed.stop('ann')
      const after = await changed.acquire('ann')
      expect(after.id).not.toBe(before.id)
      const { out } = await sh(after, 'cat file; ulimit -n; echo $A', { session: 'one' })
      expect(out).toBe('kept\n2048\n1\n')
      expect(await fixture.containers()).toEqual([after.id])
    },
  )

  deployed(
    'a supervisor that does not understand us is replaced only by an upgrade, with the files',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      const before = await sandboxes.acquire('ann')
      await shell(before, 'echo kept > file')
      await sandboxes.stop('ann')
      const backend = ofAnotherVersion(fixture.backend, before.id)
      await expect(fixture.controller({ backend }).acquire('ann')).rejects.toMatchObject({
        code: 'protocol',
        message: /another version/,
      })
      expect(await fixture.containers()).toContain(before.id)
      const upgraded = fixture.controller({ backend, limits: { ...DEFAULT_LIMITS, pids: 100 } })
      expect(await say(fixture, 'cat file', upgraded)).toBe('kept')
      expect(await fixture.containers()).not.toContain(before.id)
    },
  )

  deployed(
    'stop keeps the files; stopAll stops every sandbox; status shows it',
    async ({ fixture, expect }) => {
      const sandboxes = fixture.controller()
      expect(await sandboxes.status('ann')).toEqual({ state: 'absent', connected: false, steps: [] })
      await say(fixture, 'echo kept > file', sandboxes)
      await say(fixture, 'true', sandboxes, 'bob')
      expect(await sandboxes.status('ann')).toMatchObject({ state: 'running', connected: true })
      await sandboxes.stop('ann')
      expect(await sandboxes.status('ann')).toMatchObject({ state: 'stopped', connected: false })
      await sandboxes.stop('ann')
      expect(await say(fixture, 'cat file', sandboxes)).toBe('kept')
      await sandboxes.stopAll()
      expect(await docker('ps', '-q', '--filter', `label=sandlot.deployment=${fixture.deployment}`)).toBe('')
      expect(await sandboxes.status('bob')).toMatchObject({ state: 'stopped', connected: false })
    },
  )

  deployed('reset kills everything and empties /tmp; the workspace stays', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    const sandbox = await sandboxes.acquire('ann')
    await sandbox.run({ id: 'c'.repeat(32), command: 'touch /tmp/x; echo kept > file; exec sleep 3000' })
    await expect.poll(() => say(fixture, 'cat file', sandboxes)).toBe('kept')
    await sandboxes.reset('ann')
    expect(await say(fixture, 'ls -A /tmp; cat file; pgrep -c sleep', sandboxes)).toBe('kept\n0')
  })

  deployed('close leaves containers running', async ({ fixture, expect }) => {
    const sandboxes = fixture.controller()
    await say(fixture, 'true', sandboxes)
    await sandboxes.close()
    expect(await docker('ps', '-q', '--filter', `label=sandlot.deployment=${fixture.deployment}`)).not.toBe(
      '',
    )
    await expect(sandboxes.acquire('ann')).rejects.toMatchObject({ code: 'cancelled' })
  })
})

deployed('an engine on a TCP address works the same', async ({ fixture, expect }) => {
  const proxy = createServer((client) => {
    const engine = connect('/var/run/docker.sock')
    client.pipe(engine).pipe(client)
    client.on('error', () => engine.destroy())
    engine.on('error', () => client.destroy())
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port } = proxy.address() as AddressInfo
  const backend = createDockerBackend({
    deployment: fixture.deployment,
    dockerHost: `tcp://127.0.0.1:${port}`,
  })
  const sandboxes = fixture.controller({ backend })
  try {
    expect((await backend.inventory.capabilities()).apiVersion).toMatch(/^1\./)
    expect(await say(fixture, 'seq 1 100000 | tail -1', sandboxes)).toBe('100000')
  } finally {
    await sandboxes.close()
    proxy.close()
  }
})

describe('what is not ours, or not there', () => {
  deployed(
    'an engine that is down: a typed error that says what to do, at once, and nothing in the ledger',
    async ({ fixture, expect }) => {
      const backend = createDockerBackend({
        deployment: fixture.deployment,
        dockerHost: 'unix:///nowhere/docker.sock',
      })
      const sandboxes = fixture.controller({ backend })
      await expect(sandboxes.acquire('ann')).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: expect.stringMatching(/nowhere.*DOCKER_HOST/),
      })
      expect(await fixture.ledger.list()).toEqual([])
    },
  )

  deployed(
    'an image that is missing is named, and the next acquire with the right one works',
    async ({ fixture, expect }) => {
      await expect(fixture.controller({ image: 'sandlot/none:1' }).acquire('ann')).rejects.toMatchObject({
        code: 'engine_unavailable',
        message: expect.stringMatching(/sandlot\/none:1.*build-images\.sh/),
      })
      expect(await say(fixture, 'echo fine')).toBe('fine')
    },
  )

  deployed('creates of one name at once make one container', async ({ fixture, expect }) => {
    const spec = fixture.spec()
    const made = await Promise.all(Array.from({ length: 5 }, () => fixture.backend.create(spec)))
    expect(new Set(made.map(({ id }) => id)).size).toBe(1)
    expect(await fixture.containers()).toHaveLength(1)
  })

  deployed('a container without our label is neither seen nor touched', async ({ fixture, expect }) => {
    const foreign = fixture.spec()
    const other = createDockerBackend({ deployment: `${fixture.deployment}-other` })
    const { id } = await other.create(foreign)
    try {
      expect(await fixture.backend.inventory.inspect(id)).toBeUndefined()
      await expect(fixture.backend.open({ id, state: 'created' })).rejects.toMatchObject({
        code: 'sandbox_lost',
      })
      await fixture.backend.remove(id)
      await expect(fixture.backend.inventory.volumes.remove(foreign.volume)).rejects.toMatchObject({
        code: 'permission',
      })
      await expect(fixture.backend.create(foreign)).rejects.toMatchObject({ code: 'exists' })
      expect((await other.inventory.inspect(id))?.state).toBe('created')
    } finally {
      await other.remove(id)
      await other.inventory.volumes.remove(foreign.volume)
    }
  })
})
