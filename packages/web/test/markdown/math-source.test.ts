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
  [
    '\\begin{align}\na &= b \\\\\nd &= e\n\\end{align}',
    '```math\n\\begin{align}\na &= b \\\\\nd &= e\n\\end{align}\n```',
  ],
  ['so \\begin{bmatrix}1\\end{bmatrix}.', 'so `§\\begin{bmatrix}1\\end{bmatrix}`.'],
  ['$$\n\\begin{align*}a\\end{align*}\n$$', '```math\n\\begin{align*}a\\end{align*}\n```'],
  ['- one\n\n    $$x$$', '- one\n\n    ```math\n    x\n    ```'],
  ['$3 + 4x$ and $2\\cdot 3$', '`§3 + 4x` and `§2\\cdot 3`'],
])('%j is math', (text, code) => {
  expect(made(text)).toBe(code)
})

test.each([
  ['from $5 to $10'],
  ['$5/$10 and $20.'],
  ['it costs $5 a month, that is 10$'],
  ['$HOME and $PATH, or $HOME/$USER'],
  ['it costs $5/month, or 50$/year'],
  ['first (~$1.50) and second (~$10)'],
  ['$5-10 a seat, $20+ for teams$'],
  ["    grep -E '^$|^#$' file\n    sed 's/$a$/b/'"],
  ['so:\n\n\techo $a$\n\n\techo \\(b\\)\n\nend'],
  ['- one\n\n      echo $a$'],
  ['`\\begin{align}x\\end{align}`\n\n```\n\\begin{align}x\\end{align}\n```'],
  ['\\begin{document}x\\end{document}'],
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
  expect(made('so\n\\begin{align}\nx', true)).toBe('so\n```math\n\\begin{align}\nx')
})

test('math is told from other code', () => {
  expect(mathInCode('\u{E000}x^2')).toBe('x^2')
  expect(mathInCode('x^2')).toBeUndefined()
})
