/**
 * Expansions that do more than put a value in: bash runs commands that stand in a variable's
 * *value* in these places.
 */
import type { ArithmeticExpression, SyntaxNode, TestExpression } from 'unbash'

const COMPUTED = 'computes with variables, whose values bash would evaluate'
/** `$#`, `$?`, `$$` and `$!` are numbers whatever happens. */
const NUMBER = /^(\d[\d#a-zA-Z@_]*|0[xX][\da-fA-F]+|\$[#?$!])$/
const TRANSFORMS = new Set(['Q', 'E', 'U', 'u', 'L', 'a', 'A', 'K', 'k'])
const COMPARES_NUMBERS = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge'])

/**
 * A sentence's end about this node alone, not about what is below it; undefined when it only puts a
 * value in.
 */
export function expansionProblem(node: SyntaxNode): string | undefined {
  switch (node.type) {
    case 'ParameterExpansion':
      return parameterProblem(node)
    case 'ArithmeticExpansion':
    case 'ArithmeticCommand':
      return arithmeticProblem(node.expression)
    case 'ArithmeticFor':
      return (
        arithmeticProblem(node.initialize, true) ??
        arithmeticProblem(node.test, true) ??
        arithmeticProblem(node.update, true)
      )
    case 'TestCommand':
      return testProblem(node.expression)
    case 'ExtendedGlob':
      return 'has an extended pattern, which bash may read as something else'
    default:
      return undefined
  }
}

function parameterProblem(node: Extract<SyntaxNode, { type: 'ParameterExpansion' }>): string | undefined {
  const { prefix, index, operation } = node
  if (prefix === '!' && operation?.type !== 'Names') return 'takes a variable’s name from another variable'
  if (index !== undefined && !/^(\d{1,9}|[@*])$/.test(index.value)) return COMPUTED
  switch (operation?.type) {
    case 'Transform':
      return TRANSFORMS.has(operation.operand.value) ? undefined : 'expands a variable’s value as bash source'
    case 'Slice': {
      const plain = (value: string): boolean => /^\s*-?\d{1,9}\s*$/.test(value)
      const { offset, length } = operation
      return plain(offset.value) && (length === undefined || plain(length.value)) ? undefined : COMPUTED
    }
    case 'Default':
      return operation.operator.endsWith('=') ? 'sets a variable while it is expanded' : undefined
    case 'Unknown':
      return 'has an expansion that is not known'
    default:
      return undefined
  }
}

function arithmeticProblem(
  expression: ArithmeticExpression | undefined,
  mayBeEmpty = false,
): string | undefined {
  if (expression === undefined) return mayBeEmpty ? undefined : COMPUTED
  switch (expression.type) {
    case 'ArithmeticBinary':
      return arithmeticProblem(expression.left) ?? arithmeticProblem(expression.right)
    case 'ArithmeticUnary':
      return arithmeticProblem(expression.operand)
    case 'ArithmeticTernary':
      return (
        arithmeticProblem(expression.test) ??
        arithmeticProblem(expression.consequent) ??
        arithmeticProblem(expression.alternate)
      )
    case 'ArithmeticGroup':
      return arithmeticProblem(expression.expression)
    case 'ArithmeticWord':
      return NUMBER.test(expression.value) ? undefined : COMPUTED
    case 'ArithmeticCommandExpansion':
      return COMPUTED
  }
}

function testProblem(expression: TestExpression): string | undefined {
  switch (expression.type) {
    case 'TestUnary': {
      const { operator, operand } = expression
      if (operator !== '-v' && operator !== '-R') return undefined
      return operand.parts === undefined && /^[A-Za-z_]\w*$/.test(operand.value) ? undefined : COMPUTED
    }
    case 'TestBinary': {
      const { operator, left, right } = expression
      if (!COMPARES_NUMBERS.has(operator)) return undefined
      return NUMBER.test(left.text) && NUMBER.test(right.text) ? undefined : COMPUTED
    }
    case 'TestLogical':
      for (const operand of expression.operands) {
        const problem = testProblem(operand)
        if (problem !== undefined) return problem
      }
      return undefined
    case 'TestNot':
      return testProblem(expression.operand)
    case 'TestGroup':
      return testProblem(expression.expression)
  }
}
