/**
 * A hostile command against session state: bash is made to load this, which writes arbitrary bytes
 * into the state's memory and exits.
 */
export const FORGER = `
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void forge(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r"), *forged = fopen("forged", "r");
    unsigned long from, to;
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:session") && sscanf(line, "%lx-%lx", &from, &to) == 2) {
            memset((void *)from, 0, to - from);
            fread((void *)from, 1, to - from, forged);
            puts("forged");
        }
    fflush(stdout);
    _exit(0);
}
`

/**
 * One after the other: the number that says "whole", the length that is claimed, and the bytes
 * behind them.
 */
function state(bytes: Uint8Array, claimed = bytes.length + 8, whole = 2): Uint8Array {
  const head = Buffer.alloc(8)
  head.writeUInt32LE(whole, 0)
  head.writeUInt32LE(claimed >>> 0, 4)
  return Buffer.concat([head, bytes])
}

const text = (value: string): Buffer => Buffer.from(value)
const SIZE = 262_144

/** The bytes, and whether a session may accept them. */
export const FORGERIES: readonly { title: string; bytes: Uint8Array; taken: boolean }[] = [
  { title: 'nothing but zeros', bytes: state(text(''), 0, 0), taken: false },
  { title: 'an empty state', bytes: state(text('')), taken: false },
  { title: 'a length below that of the head', bytes: state(text('/\0'), 3), taken: false },
  { title: 'a length beyond the memory', bytes: state(text('/\0'), SIZE + 1), taken: false },
  { title: 'the greatest length there is', bytes: state(text('/\0'), 0xffff_ffff), taken: false },
  {
    title: 'a state that is still being written',
    bytes: state(text('/\0A=1\0'), undefined, 1),
    taken: false,
  },
  { title: 'an unknown kind of state', bytes: state(text('/\0A=1\0'), undefined, 77), taken: false },
  { title: 'no end of the last string', bytes: state(text('/\0A=1')), taken: false },
  { title: 'a relative directory', bytes: state(text('deep\0A=1\0')), taken: false },
  { title: 'a directory of 5,000 characters', bytes: state(text(`/${'d'.repeat(5_000)}\0`)), taken: false },
  { title: 'an entry without a name', bytes: state(text('/\0=x\0')), taken: false },
  { title: 'an entry without a value', bytes: state(text('/\0A\0')), taken: false },
  { title: 'an empty entry', bytes: state(text('/\0\0A=1\0')), taken: false },
  {
    title: 'a variable longer than the system takes',
    bytes: state(text(`/\0A=${'x'.repeat(131_072)}\0`)),
    taken: false,
  },
  { title: '30,000 variables', bytes: state(text(`/\0${'A=1\0'.repeat(30_000)}`)), taken: false },
  { title: 'noise', bytes: state(Buffer.alloc(SIZE - 8, 0xa7), SIZE), taken: false },
  {
    title: 'a full memory of one string after the other',
    bytes: state(text(`/\0${'B=2\0'.repeat(4_000)}`)),
    taken: true,
  },
  {
    title: 'a directory that is not there',
    bytes: state(text('/nothing/there\0PATH=/usr/bin:/bin\0')),
    taken: true,
  },
  {
    title: 'a directory that is a file',
    bytes: state(text('/etc/passwd\0PATH=/usr/bin:/bin\0')),
    taken: true,
  },
  {
    title: 'variables that break the start of a program',
    bytes: state(
      text(
        '/\0PATH=/usr/bin:/bin\0LD_PRELOAD=/nothing.so\0LD_LIBRARY_PATH=/workspace/forged\0LD_AUDIT=/nothing.so\0' +
          'GLIBC_TUNABLES=glibc.rtld.optional_static_tls=x\0BASH_ENV=/dev/full\0SHELLOPTS=noexec\0BASHOPTS=x\0' +
          'SANDLOT_SESSION_FD=0\0SANDLOT_SESSION_LATER_X=1\0',
      ),
    ),
    taken: true,
  },
]

/** The same short assignment, as often as a state may have entries. */
export const COPIES = state(text(`/\0${'LONG=1\0'.repeat(4_096)}`))
