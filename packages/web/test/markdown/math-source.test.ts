import { expect, test } from 'vitest'
import { mathInCode, withMath } from '../../src/markdown/math-source.ts'

/** With the mark as `§`. */
const made = (text: string, streaming = false) => withMath(text, streaming).replaceAll('\u{E000}', '§')

test.each([
  ['it is $x_1 + y_2$.', 'it is `§x_1 + y_2`.'],
  ['it is \\(a_b\\).', 'it is `§a_b`.'],
  ['a $$x$$ b', 'a `§x` b'],
  ['$$\nx^2\n$$', '```math\nx^2\n```'],
  ['so\n\\[ a \\\\ b \\]\nend', 'so\n```math\na \\\\ b\n```\nend'],
  ['- $$x$$\n- b', '- ```math\n  x\n  ```\n- b'],
  ['> $$\n> x\n> $$', '> ```math\n> x\n> ```'],
])('%j is math', (text, code) => {
  expect(made(text)).toBe(code)
})

test.each([
  ['from $5 to $10'],
  ['$5/$10 and $20.'],
  ['it costs $5 a month, that is 10$'],
  ['$HOME and $PATH, or $HOME/$USER'],
  ['`$x$` and ``$$y$$``'],
  ['```\n$$\nx\n$$\n```'],
  ['```sh\necho $a $b$'],
  ['escaped \\$x\\$'],
  ['$x\n\ny$'],
  ['\\\\[ 2ex ]'],
])('%j is none', (text) => {
  expect(made(text)).toBe(text)
})

test('what is unfinished is a block that goes on, and only while the text does', () => {
  expect(made('so\n$$\n\\frac{1}', true)).toBe('so\n```math\n\\frac{1}')
  expect(made('so\n\\[\nx', true)).toBe('so\n```math\nx')
  expect(made('so\n$$\n\\frac{1}', false)).toBe('so\n$$\n\\frac{1}')
  expect(made('```\n$$\nx', true)).toBe('```\n$$\nx')
})

test('math is told from other code', () => {
  expect(mathInCode('\u{E000}x^2')).toBe('x^2')
  expect(mathInCode('x^2')).toBeUndefined()
})
