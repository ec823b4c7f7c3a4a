/** Properties of any two commands, and of any text at all. */
import { VERDICTS } from '@sandlot/shared/chat/rules'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { judge } from '../../src/approval/engine.ts'
import { MAX_PARTS } from '../../src/approval/shell/parts.ts'
import { quoteWord } from '../../src/approval/shell/pattern.ts'
import { shellParts } from '../../src/approval/shell/shell-parts.ts'
import { RULES } from './corpus/corpus.ts'
import { effects } from './corpus/effects.ts'
import { misread } from './corpus/misread.ts'
import { options } from './corpus/options.ts'
import { programs } from './corpus/programs.ts'
import { structure } from './corpus/structure.ts'
import { words } from './corpus/words.ts'

const all = [words, structure, programs, options, effects, misread].flat().map(([command]) => command)
/** Commands that keep their meaning before and after others. */
const joinable = all.filter((command) => {
  const broken = shellParts(command).some(
    (part) => part.type === 'unknown' && /complete bash|too|NUL/.test(part.because),
  )
  return !broken && !/[\n#\r]|<<|&$|^$/.test(command) && command.length < 500
})
/** Words of one simple command: what is left of `$(a) b` when a prints nothing. */
const simple = joinable.filter(
  (command) =>
    /^[a-z]+( [\w./=-]+)*$/.test(command) &&
    !/^(time|case|if|for|coproc|function|until|while|select|let|declare|local|readonly|export)\b/.test(
      command,
    ),
)

const strictness = (command: string, mode: 'manual' | 'yolo'): number => {
  const asks = [{ kind: 'shell' as const, command }]
  const request = { tool: 'run_shell_command', kind: 'execute' as const, readOnly: false, asks }
  return VERDICTS.indexOf(judge(request, RULES, mode).verdict)
}

const modes = fc.constantFrom('manual' as const, 'yolo' as const)

test('a command with another is never more permissive than the stricter of both', () => {
  expect(joinable.length).toBeGreaterThan(300)
  const together: ((a: string, b: string) => string)[] = [
    (a, b) => `${a}; ${b}`,
    (a, b) => `${a} && ${b}`,
    (a, b) => `${a} || ${b}`,
    // Bash takes no `!` right behind a `|`.
    (a, b) => (b.startsWith('!') ? `${a} | { ${b}; }` : `${a} | ${b}`),
    (a, b) => `${a} & ${b}`,
    (a, b) => `${a}\n${b}`,
    (a, b) => `( ${a} ); { ${b}; }`,
    (a, b) => `if ${a}; then ${b}; fi`,
    // The spaces: what begins with a bracket would make it arithmetic.
    (a, b) => `echo "$( ${a} )" $( ${b} )`,
    (a, b) => `f() { ${a}; }; ${b}`,
    (a, b) => `bash -c ${quoteWord(a)}; eval ${quoteWord(b)}`,
  ]
  fc.assert(
    fc.property(
      fc.constantFrom(...joinable),
      fc.constantFrom(...joinable),
      fc.constantFrom(...together),
      modes,
      (a, b, join, mode) => {
        const stricter = Math.max(strictness(a, mode), strictness(b, mode))
        expect(strictness(join(a, b), mode), join(a, b)).toBeGreaterThanOrEqual(stricter)
      },
    ),
    { numRuns: 400 },
  )
})

test('a command in a wrapper is never more permissive than by itself', () => {
  expect(simple.length).toBeGreaterThan(40)
  const wraps: ((a: string) => string)[] = [
    (a) => `bash -c ${quoteWord(a)}`,
    (a) => `sh -c ${quoteWord(`bash -c ${quoteWord(a)}`)}`,
    (a) => `$(true) ${a}`,
    (a) => `\${x} ${a}`,
    (a) => `env A=1 ${a}`,
    (a) => `timeout 5 ${a}`,
    (a) => `nice nohup command ${a}`,
    (a) => `sudo ${a}`,
    (a) => `xargs ${a}`,
    (a) => `find . -exec ${a} \\;`,
    (a) => `time ${a}`,
    (a) => `! ${a}`,
    (a) => `x=1 ${a}`,
    (a) => `${a} > /dev/null`,
    (a) => `trap ${quoteWord(a)} EXIT`,
  ]
  fc.assert(
    fc.property(fc.constantFrom(...simple), fc.constantFrom(...wraps), modes, (a, wrap, mode) => {
      expect(strictness(wrap(a), mode), wrap(a)).toBeGreaterThanOrEqual(strictness(a, mode))
    }),
    { numRuns: 300 },
  )
})

test('any text is judged: nothing throws, and the parts are bounded', () => {
  const piece = fc.constantFrom(
    ...'$ ( ) ` " \' { } [ ] < > | & ; # \\ = * ? ! ~ @ % : / - + , . 0 1 a x rm ls if then fi for in do done case esac while function coproc time eval bash -c << <<- <<< $(( )) [[ ]] ${ $\' $" <( >( &> |& ;; ;& \n \t \r E'.split(
      ' ',
    ),
    ' ',
    '\n',
    '\u0000',
    '\u{1F600}',
  )
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 200 }),
    fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join('')),
    fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(' ')),
  )
  fc.assert(
    fc.property(text, (command) => {
      const parts = shellParts(command)
      expect(parts.length).toBeLessThanOrEqual(MAX_PARTS + 1)
      expect(
        parts.filter(
          (part) => part.type === 'unknown' && part.because.startsWith('could not be looked into'),
        ),
      ).toEqual([])
    }),
    { numRuns: 1_500 },
  )
})

test('a command that only rules could stop is judged alike without being parsed where there are none', () => {
  const elsewhere = {
    id: 'r',
    origin: 'user',
    effect: 'deny',
    match: { tool: 'another' },
    createdAt: 0,
  } as const
  fc.assert(
    fc.property(fc.constantFrom(...all), (command) => {
      const asks = [{ kind: 'shell' as const, command }]
      const request = { tool: 'run_shell_command', kind: 'execute' as const, readOnly: false, asks }
      expect(judge(request, [], 'yolo')).toEqual(judge(request, [elsewhere], 'yolo'))
    }),
  )
})

test('what nests deeply or goes on for long is unknown, not slow', () => {
  const deep = [
    'echo $(',
    '( ',
    '{ ',
    'echo "$(',
    'echo ${x:-',
    'echo $((',
    '[[ ( ',
    'if ',
    'case x in x) ',
    'cat <(',
    'f() { ',
  ]
  for (const opening of deep) {
    for (const times of [50, 1_000, 5_000]) {
      const parts = shellParts(`${opening.repeat(times)}rm x`)
      expect(
        parts.some((part) => part.type === 'unknown'),
        `${opening} ${times}`,
      ).toBe(true)
    }
  }
})
