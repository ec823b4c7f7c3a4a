import { parseExactly } from '@sandlot/shared/base/exact-numbers'
import { expect, test } from 'vitest'
import {
  changesOf,
  editFields,
  editValues,
  editedInput,
  editedJson,
} from '../../src/chat/approvals/edit-form.ts'

const SCHEMA = {
  type: 'object',
  required: ['command'],
  properties: {
    command: { type: 'string', description: 'The command line.' },
    cwd: { type: 'string' },
    timeout_ms: { type: 'integer' },
    background: { type: 'boolean' },
    shell: { type: 'string', enum: ['bash', 'sh'] },
    env: { type: 'object' },
  },
}
const CALL = { command: 'npm test', cwd: 'web', env: { A: '1' }, extra: 'x'.repeat(80) }

test('a form has the schema’s arguments and those that the call has, each as what it is', () => {
  const fields = editFields(SCHEMA, CALL) ?? []
  expect(fields.map(({ name, type, required }) => [name, type, required])).toEqual([
    ['command', 'text', true],
    ['cwd', 'line', false],
    ['timeout_ms', 'number', false],
    ['background', 'boolean', false],
    ['shell', 'choice', false],
    ['env', 'json', false],
    ['extra', 'text', false],
  ])
  const values = editValues(fields, CALL)
  expect(values).toMatchObject({ command: 'npm test', timeout_ms: '', env: '{\n  "A": "1"\n}' })
  expect(editedInput(fields, values)).toEqual({ input: CALL })
  expect(
    editedInput(fields, { ...values, cwd: '', timeout_ms: '5000', background: 'true', shell: 'sh' }),
  ).toEqual({
    input: {
      command: 'npm test',
      timeout_ms: 5000,
      background: true,
      shell: 'sh',
      env: { A: '1' },
      extra: CALL.extra,
    },
  })
  expect(editedInput(fields, { ...values, command: '' })).toMatchObject({ input: { command: '' } })
  expect(editedInput(fields, { ...values, timeout_ms: 'soon' })).toEqual({
    problem: 'timeout_ms is not valid as a number.',
  })
  expect(editedInput(fields, { ...values, env: '{' })).toEqual({ problem: 'env is not valid JSON.' })
})

test.each([[undefined], [{}], ['text'], [{ properties: {} }]])(
  'without a usable schema (%j) it is JSON',
  (schema) => {
    expect(editFields(schema, schema === undefined ? CALL : {})).toBeNull()
    expect(editedJson('{"a": 1}')).toEqual({ input: { a: 1 } })
    expect(editedJson('[1]')).toEqual({ problem: 'Arguments must be a JSON object, like {"path": "a.txt"}.' })
    expect(editedJson('{')).toEqual({ problem: 'This is not valid JSON.' })
  },
)

test('what was changed is told by argument', () => {
  expect(changesOf({ command: 'rm -rf a', cwd: 'x' }, { command: 'rm -rf a/tmp', n: 2 })).toEqual([
    { name: 'command', oldText: 'rm -rf a', newText: 'rm -rf a/tmp' },
    { name: 'cwd', oldText: 'x', newText: '' },
    { name: 'n', oldText: '', newText: '2' },
  ])
  expect(changesOf('broken', { a: 'b' })).toHaveLength(1)
})

test('a number keeps all its digits in the form, as JSON and in what was changed', () => {
  const call = parseExactly('{"timeout_ms":1234567890123456789,"env":{"A":[0.1234567890123456789]}}')
  const fields = editFields(SCHEMA, call) ?? []
  const values = editValues(fields, call)
  expect(values).toMatchObject({ timeout_ms: '1234567890123456789' })
  expect(values['env']).toContain('0.1234567890123456789')
  expect(editedInput(fields, { ...values, command: 'x' })).toMatchObject({ input: call })
  const edited = editedJson('{"timeout_ms":1234567890123456788}')
  expect(edited).toEqual({ input: parseExactly('{"timeout_ms":1234567890123456788}') })
  expect('input' in edited && changesOf(call, edited.input)[0]).toEqual({
    name: 'timeout_ms',
    oldText: '1234567890123456789',
    newText: '1234567890123456788',
  })
})
