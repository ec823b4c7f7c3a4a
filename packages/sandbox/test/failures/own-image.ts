/** The sandbox image in a tenth of its size, for engines of the tests' own. */
import { execFile, spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { testConfig } from '../support/config.ts'

const PREFIX = 'sandlot-test-image-'

const SCRIPT = readFileSync(join(import.meta.dirname, 'own-image.sh'))

let image: Promise<Buffer> | undefined

/**
 * The file system as a tar, made once per version of the image under test and kept in the temporary
 * directory, where the next test file finds it. An older version's is removed.
 */
export function smallImage(): Promise<Buffer> {
  image ??= (async () => {
    const { stdout } = await promisify(execFile)('docker', [
      'image',
      'inspect',
      '--format',
      '{{.Id}}',
      testConfig.image,
    ])
    const version = createHash('sha256').update(stdout).update(SCRIPT).digest('hex').slice(0, 16)
    const name = `${PREFIX}${version}.tar`
    const file = join(tmpdir(), name)
    const kept = await readFile(file).catch(() => undefined)
    if (kept) return kept
    const made = await makeSmallImage()
    const written = `${file}.${randomBytes(4).toString('hex')}`
    await writeFile(written, made, { mode: 0o600 })
    await rename(written, file)
    const older = readdirSync(tmpdir()).filter((each) => each.startsWith(PREFIX) && each.endsWith('.tar'))
    for (const each of older) if (each !== name) await rm(join(tmpdir(), each), { force: true })
    return made
  })()
  return image
}

async function makeSmallImage(): Promise<Buffer> {
  const options = '--rm --interactive --network none --user 0 --tmpfs /tmp --log-driver none'.split(' ')
  const label = 'sandlot.deployment=test-image'
  const child = spawn(
    'docker',
    ['run', ...options, '--label', label, '--entrypoint', 'sh', testConfig.image, '-s'],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  )
  child.stdin.on('error', () => {})
  child.stdin.end(SCRIPT)
  const [tar, complaints, code] = await Promise.all([
    Array.fromAsync(child.stdout as AsyncIterable<Buffer>),
    Array.fromAsync(child.stderr as AsyncIterable<Buffer>),
    new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve)),
  ])
  if (code !== 0)
    throw new Error(`The small image could not be made: ${Buffer.concat(complaints).toString()}`)
  return Buffer.concat(tar)
}
