import { TOO_LONG } from '@sandlot/shared/node/line-splitter'
import { expect, test } from 'vitest'
import { readMessage } from '../../src/acp/incoming.ts'

test('a message, or the error that answers it', () => {
  const good = [
    { jsonrpc: '2.0', id: 0, method: 'x' },
    { jsonrpc: '2.0', id: null, result: null },
    { jsonrpc: '2.0', method: 'y', params: {} },
  ]
  for (const message of good) expect(readMessage(JSON.stringify(message))).toEqual({ message })
  const bad: [string | typeof TOO_LONG, number][] = [
    ['{', -32_700],
    ['', -32_700],
    ['[]', -32_600],
    ['[{"jsonrpc":"2.0","method":"y"}]', -32_600],
    ['7', -32_600],
    ['null', -32_600],
    ['{}', -32_600],
    ['{"jsonrpc":"1.0","method":"y"}', -32_600],
    ['{"jsonrpc":"2.0","method":7}', -32_600],
    ['{"jsonrpc":"2.0","id":[],"method":"y"}', -32_600],
    ['{"jsonrpc":"2.0","id":1}', -32_600],
    [TOO_LONG, -32_600],
  ]
  for (const [text, code] of bad)
    expect(readMessage(text)).toMatchObject({ answer: { id: null, error: { code } } })
})
