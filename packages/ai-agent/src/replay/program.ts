/**
 * `record [<sessions.db>] <session> <file>`: a session as a file for a bug report, secrets masked;
 * without a path from `DATABASE_URL`. `play <file>`: make its requests again and say where they
 * differ. Run by `./sandlot replay`. Exit code 0: the same, 1: not, 2: wrong use.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { makeScrubber } from '@sandlot/shared/base/scrub'
import { openSessionReader } from '@sandlot/storage/store/open'
import { readDatabase } from './config.ts'
import { readRecording, record, replay } from './replay.ts'

const USE = 'record [<sessions.db>] <session> <file> | play <file>'

async function main([what, ...args]: string[]): Promise<number> {
  const say = (line: string): void => void process.stdout.write(`${line}\n`)
  if (what === 'record' && (args.length === 2 || args.length === 3)) {
    const [sessionId = '', file = ''] = args.slice(-2)
    const where = args.length === 3 ? (args[0] ?? '') : readDatabase()
    const reader = await openSessionReader(where, { waitMs: 1_000 })
    try {
      const recording = await record(reader, sessionId, makeScrubber([]))
      writeFileSync(file, `${JSON.stringify(recording)}\n`, { mode: 0o600 })
      const { requests, mismatch } = recording.checked
      say(
        `${file}: ${recording.events.length} events, ${requests} requests. What looks like a secret is hidden;`,
      )
      say('the conversation itself is in it: read it before you pass it on.')
      if (mismatch !== undefined) say(`It does not replay: ${mismatch}`)
      return 0
    } finally {
      await reader.close()
    }
  }
  if (what === 'play' && args.length === 1) {
    const recording = readRecording(readFileSync(args[0] ?? '', 'utf8'))
    const { requests, mismatch } = replay(recording)
    if (recording.checked.mismatch !== undefined) say(`When it was recorded: ${recording.checked.mismatch}`)
    say(mismatch === undefined ? `${requests} requests, the same byte for byte.` : mismatch.text)
    return mismatch === undefined ? 0 : 1
  }
  process.stderr.write(`${USE}\n`)
  return 2
}

process.exitCode = await main(process.argv.slice(2))
