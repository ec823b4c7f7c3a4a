import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
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

/** The same, not static, and ended at once by any misuse of memory and any undefined behaviour. Needs clang. */
export async function buildSanitizedSbxd(directory: string): Promise<string> {
  const binary = join(directory, 'sbxd')
  const library = join(directory, 'session.so')
  await make([`SANITIZED=${binary}`, `OUT=${binary}`, 'sanitized', library])
  return binary
}

/** The whole supervisor under libFuzzer. Needs clang. */
export async function buildFuzzer(directory: string): Promise<string> {
  const binary = join(directory, 'fuzz-sbxd')
  await make([`FUZZ=${binary}`, 'fuzz'])
  return binary
}

/** Every C file of the supervisor, as `ANALYSED` names them. */
export async function cFiles(): Promise<string[]> {
  const found = await Promise.all(
    ['src', 'session'].map(async (folder) =>
      (await readdir(join(sources, folder))).map((name) => `${folder}/${name}`),
    ),
  )
  return found.flat().filter((name) => name.endsWith('.c'))
}

/** Rejects with the analyser's words when it finds anything in these files. Needs clang. */
export async function analyse(files: readonly string[]): Promise<void> {
  await make(['-k', '-j2', `ANALYSED=${files.join(' ')}`, 'analyse'])
}

async function make(args: readonly string[]): Promise<void> {
  await promisify(execFile)('make', ['-s', '-C', sources, ...args], { maxBuffer: 16 * 1024 * 1024 })
}
