/** The few programs that the demo model knows by heart, in the languages of the sandbox. */

type Language = 'python' | 'javascript' | 'shell'

const BY_EXTENSION: Record<string, Language> = {
  py: 'python',
  js: 'javascript',
  mjs: 'javascript',
  sh: 'shell',
  bash: 'shell',
}
const INTERPRETER: Record<Language, string> = { python: 'python3', javascript: 'node', shell: 'bash' }

/** The language of a file by its name. */
export function languageOf(path: string): Language | undefined {
  return BY_EXTENSION[path.split('.').at(-1)?.toLowerCase() ?? '']
}

/** The command that runs a file, if its name says how. */
export function runCommand(path: string): string | undefined {
  const language = languageOf(path)
  return language === undefined ? undefined : `${INTERPRETER[language]} ${shellWord(path)}`
}

/** A word for bash, quoted where it must be. */
export function shellWord(word: string): string {
  // A leading dash would be an option.
  const safe = word.startsWith('-') ? `./${word}` : word
  return /^[\w./@%+=:,-]+$/.test(safe) ? safe : `'${safe.replaceAll("'", `'\\''`)}'`
}

interface Program {
  asked: RegExp
  code: Record<Language, (limit: number) => string>
  /** When the request names no number. */
  limit: number
}

const PROGRAMS: readonly Program[] = [
  {
    asked: /\bprimes?\b/i,
    limit: 50,
    code: {
      python: (n) =>
        `def is_prime(n):\n    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))\n\n\nprint([n for n in range(${n}) if is_prime(n)])\n`,
      javascript: (n) =>
        `const isPrime = (n) => {\n  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false\n  return n > 1\n}\n\nfor (let n = 0; n < ${n}; n++) if (isPrime(n)) console.log(n)\n`,
      shell: (n) =>
        `for ((n = 2; n < ${n}; n++)); do\n  prime=1\n  for ((d = 2; d * d <= n; d++)); do ((n % d == 0)) && prime=0; done\n  ((prime)) && echo "$n"\ndone\n`,
    },
  },
  {
    asked: /fibonacci/i,
    limit: 100,
    code: {
      python: (n) => `a, b = 0, 1\nwhile a < ${n}:\n    print(a)\n    a, b = b, a + b\n`,
      javascript: (n) =>
        `let [a, b] = [0, 1]\nwhile (a < ${n}) {\n  console.log(a)\n  ;[a, b] = [b, a + b]\n}\n`,
      shell: (n) => `a=0 b=1\nwhile ((a < ${n})); do\n  echo "$a"\n  ((t = a + b, a = b, b = t))\ndone\n`,
    },
  },
  {
    asked: /fizz ?buzz/i,
    limit: 20,
    code: {
      python: (n) =>
        `for n in range(1, ${n} + 1):\n    print("Fizz" * (n % 3 == 0) + "Buzz" * (n % 5 == 0) or n)\n`,
      javascript: (n) =>
        `for (let n = 1; n <= ${n}; n++) console.log((n % 3 ? '' : 'Fizz') + (n % 5 ? '' : 'Buzz') || n)\n`,
      shell: (n) =>
        `for ((n = 1; n <= ${n}; n++)); do\n  out=\n  ((n % 3)) || out+=Fizz\n  ((n % 5)) || out+=Buzz\n  echo "\${out:-$n}"\ndone\n`,
    },
  },
  {
    asked: /\bsquares?\b/i,
    limit: 10,
    code: {
      python: (n) => `for n in range(1, ${n} + 1):\n    print(n, n * n)\n`,
      javascript: (n) => `for (let n = 1; n <= ${n}; n++) console.log(n, n * n)\n`,
      shell: (n) => `for ((n = 1; n <= ${n}; n++)); do echo "$n $((n * n))"; done\n`,
    },
  },
  {
    asked: /\b(?:numbers?|count|counts)\b/i,
    limit: 10,
    code: {
      python: (n) => `for n in range(1, ${n} + 1):\n    print(n)\n`,
      javascript: (n) => `for (let n = 1; n <= ${n}; n++) console.log(n)\n`,
      shell: (n) => `for ((n = 1; n <= ${n}; n++)); do echo "$n"; done\n`,
    },
  },
  {
    asked: /\b(?:date|time)\b/i,
    limit: 0,
    code: {
      python: () => 'from datetime import datetime\n\nprint(datetime.now().isoformat(timespec="seconds"))\n',
      javascript: () => 'console.log(new Date().toISOString())\n',
      shell: () => 'date\n',
    },
  },
]

/**
 * The program that prints what is asked for: one of those above, or a quoted (or short) text.
 * Undefined when the demo model does not know how.
 */
export function programFor(language: Language, asked: string): string | undefined {
  const known = PROGRAMS.find((program) => program.asked.test(asked))
  const number = /\d{1,6}/.exec(asked.replaceAll(',', ''))?.[0]
  if (known !== undefined) return known.code[language](number === undefined ? known.limit : Number(number))
  const quoted = /"([^"]+)"|“([^”]+)”|`([^`]+)`|'([^']+)'/
    .exec(asked)
    ?.slice(1)
    .find((found) => found !== undefined)
  const text = quoted ?? (/^hello\b/i.test(asked) && asked.length < 60 ? asked : undefined)
  return text === undefined ? undefined : printProgram(language, text)
}

/** A program that prints one text. */
function printProgram(language: Language, text: string): string {
  if (language === 'python') return `print(${JSON.stringify(text)})\n`
  if (language === 'javascript') return `console.log(${JSON.stringify(text)})\n`
  return `echo ${shellWord(text)}\n`
}
