import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const sources = fileURLToPath(new URL('../../../docker/sandbox', import.meta.url))

/** Compile sbxd into this directory, with every warning an error. Returns the binary's path. */
export async function buildSbxd(directory: string): Promise<string> {
  const binary = join(directory, 'sbxd')
  await promisify(execFile)('make', ['-s', '-C', sources, `OUT=${binary}`, 'CFLAGS=-O2 -Werror'])
  return binary
}
