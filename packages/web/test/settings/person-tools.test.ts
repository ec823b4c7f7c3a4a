import { describe, expect, test } from 'vitest'
import { splitTools, withPersonTools } from '../../src/settings/people/person-tools.ts'

describe('what is set about tools', () => {
  test.each([
    [undefined, undefined, {}],
    [true, true, {}],
    [{}, {}, {}],
    [{ terminal: false }, undefined, { terminal: false }],
    [{ '*': false, exec: true }, false, { exec: true }],
    [
      { read_file: false, terminal: true, exec: false },
      { read_file: false },
      { terminal: true, exec: false },
    ],
  ])('%o is of the agent %o, and of people %o', (tools, agentTools, own) => {
    const split = splitTools(tools)
    expect(split.agentTools).toEqual(agentTools)
    expect(split.personTools).toEqual(own)
    expect(withPersonTools(split.agentTools, split.personTools)).toEqual(tools)
  })
})
