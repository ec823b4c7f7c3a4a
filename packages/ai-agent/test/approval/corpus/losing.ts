/** Lines that lose a file which git does not hold, in the repository of `losing.test.ts`. */
export const losing = String.raw`
rm notes.md
rm -f -- notes.md
unlink notes.md
shred -u notes.md
shred notes.md
\rm notes.md
/bin/rm notes.md
command rm notes.md
env LC_ALL=C rm notes.md
env -C draft rm d1.txt
find draft -execdir rm d1.txt \;
find . -name notes.md -delete
find . -name notes.md -exec rm {} +
find kept.txt -fprint notes.md
find kept.txt -fprint0 notes.md
find kept.txt -fprintf notes.md %p
find kept.txt -fls notes.md
ls notes.md | xargs rm
ls notes.md | xargs -I{} mv {} /tmp/sandlot-lost
timeout --kill=5 9 rm notes.md
timeout -s INT 9 rm notes.md
nice -n 5 rm notes.md
nohup rm notes.md
bash -c 'rm notes.md'
eval "rm notes.md"
x=notes.md; eval "rm $x"
x=notes.md; bash -c "rm $x"
echo rm notes.md | sh
c=rm; $c notes.md; rm -f data.csv
bash <<< 'rm notes.md'
trap 'rm notes.md' EXIT
f() { rm notes.md; }; f
(cd draft && rm d1.txt)
cd draft; rm d1.txt
rm -rf draft
rm -rf ../repo
rm -rf ./*
cd .. && rm -rf repo
rm *.md
mv notes.md /tmp/sandlot-lost
mv notes.md /dev/shm/sandlot-lost
mv draft /tmp/sandlot-lost
mv ../repo /tmp/sandlot-lost
mv -t /tmp notes.md && rm /tmp/notes.md
mv --target=/tmp notes.md
mv kept.txt notes.md
mv -f kept.txt notes.md
mv -T kept.txt notes.md
mv src/changed.txt notes.md
mv --force kept.txt notes.md
cp kept.txt notes.md
cp -f kept.txt notes.md
cp -T src/main.c notes.md
cp --remove-d kept.txt notes.md
cp --remove-destination kept.txt notes.md
cp /dev/null notes.md
cp -r new/. draft
cp -rT new draft
cp -t draft new/d1.txt
cp --target-directory=draft new/d1.txt
cp new/d1.txt draft/
install kept.txt notes.md
install -m 644 kept.txt notes.md
install -D kept.txt draft/d1.txt
ln -sf kept.txt notes.md
ln -f kept.txt notes.md
ln --for -s kept.txt notes.md
ln -sfn ../kept.txt draft/d1.txt
dd if=kept.txt of=notes.md
dd if=kept.txt of=notes.md conv=notrunc
truncate -s 0 notes.md
truncate --size=0 notes.md
truncate --si 0 notes.md
fallocate -p -l 4 notes.md
tee notes.md < kept.txt
echo x | tee kept.txt notes.md
sort -o notes.md kept.txt
sort kept.txt -onotes.md
sort --output=notes.md kept.txt
sort --out notes.md kept.txt
shuf -o notes.md kept.txt
shuf -e a b --output notes.md
uniq kept.txt notes.md
uniq -c kept.txt notes.md
xxd kept.txt notes.md
iconv -f utf8 -t latin1 -o notes.md kept.txt
split kept.txt
csplit -q kept.txt 1
ed -s notes.md <<< $'1,$d\nw\nq'
patch -o notes.md kept.txt fix.patch
patch data.csv data.patch
patch -s < data.patch
patch -p0 -i data.patch
sed -i s/e/E/ notes.md
sed -n -i p,p notes.md; sed -i 1d notes.md
sed --in-place 1d notes.md
sed --in-pl 1d notes.md
sed -ni 2p notes.md
sed -e w\ notes.md kept.txt
sed 'w notes.md' kept.txt
sed -n 's/o/O/w notes.md' kept.txt
perl -i -pe 's/e/E/' notes.md
perl -pi -e 's/e/E/' notes.md
awk '{print > "notes.md"}' kept.txt
awk '{ printf "%s\n", $1 > "notes.md" }' kept.txt
gzip notes.md
gzip -9 notes.md
gzip -f kept.txt notes.md
bzip2 notes.md
xz notes.md
zstd -q --rm notes.md
gunzip old.gz
zip -qm new.zip notes.md
zip -qj a.zip kept.txt && zip -qd a.zip notes.md
unzip -qo a.zip
unzip -qo a.zip -d .
yes | unzip -q a.zip
tar xf a.tar
tar -xf a.tar
tar x -f a.tar
tar --extract --file=a.tar
tar -C . -xf a.tar notes.md
tar -xf a.tar --overwrite
tar xf a.tar --unlink-first
tar xf - < a.tar
cat a.tar | tar x
tar cf new.tar --remove-files notes.md
tar cf new.tar --remove-f notes.md
tar -cf notes.md kept.txt
tar cf notes.md kept.txt
curl -s -o notes.md file://$PWD/kept.txt
curl -so notes.md file:///dev/null
curl -s file:///etc/hostname --output notes.md
curl -s --dump-head notes.md file:///etc/hostname
cd draft && curl -sO file://$OLDPWD/new/d1.txt
curl -s --create-dirs -o draft/d1.txt file:///etc/hostname
curl -s -D notes.md file:///etc/hostname
curl -s -c notes.md file:///etc/hostname
curl -s --trace notes.md file:///etc/hostname
curl -s --stderr notes.md nowhere:
wget -qO notes.md http://127.0.0.1:9/
wget -o notes.md http://127.0.0.1:9/
x='1 -o notes.md'; sort --key=$x kept.txt
uniq [kn]*t*.[tm]*
xxd -ps kept.txt notes.md
xxd -pc kept.txt notes.md
curl -sT kept.txt "file://$PWD/notes.md"
m=xf; tar "$m" a.tar
mkdir n; echo x > n/notes.md; tar cf b.tar -C n notes.md; tar xf b.tar
mkdir n; echo x > n/notes.md; zip -qr b.zip n; unzip -qjo b.zip
cp kept.txt x; sed -iaa s/o/p/ x
cp kept.txt x; perl -iaa -pe s/o/p/ x
cp new/d1.txt .; sed -i'draft/*' s/o/p/ d1.txt
sed '1e rm notes.md' kept.txt
sed 's/one/rm notes.md/e' kept.txt
perl -0777pi -e 's/e/E/' notes.md
awk '{print(toupper($0)) > "notes.md"}' kept.txt
awk '{print > "notes" ".md"}' kept.txt
awk 'BEGIN{system("rm notes.md")}'
awk '{print | "cat > notes.md"}' kept.txt
env - rm notes.md
source <(echo rm notes.md)
mv -n -f kept.txt notes.md
yes | ln -si kept.txt notes.md
gunzip old
yes | zstd kept.txt -o notes.md
ed -s kept.txt <<< $'w notes.md\nq'
git grep -Orm since
git -c diff.external='rm -f notes.md;:' diff
git ls-remote --upload-pack='rm notes.md;git-upload-pack' .
GIT_EXTERNAL_DIFF='rm -f notes.md;:' git diff
TAR_OPTIONS=--remove-files tar cf new.tar notes.md
c=rm; $c notes.md
R=/bin/rm; $R notes.md
c=$(echo rm); $c notes.md
f() { "$@"; }; f rm notes.md
echo x > notes.md
echo x >| notes.md
echo x &> notes.md
echo x >& notes.md
: > notes.md
> notes.md
echo xxxx 1<> notes.md
exec 3> notes.md
{ exec 3<> notes.md; echo xxxx >&3; }
cat > notes.md <<< x
cat kept.txt > ./src/../notes.md
ls > "notes.md"
git checkout src/changed.txt
git checkout -- src/changed.txt
git checkout .
git checkout -f
git checkout --for
git checkout HEAD src/changed.txt
git checkout HEAD -- src
git checkout HEAD~3 -- notes.md
git checkout -q HEAD~3 -- .
git -C src checkout changed.txt
git -C . checkout src
git checkout 's*'
git --git-dir .git checkout src/changed.txt
git restore src/changed.txt
git restore .
git restore -SW src/changed.txt
git restore -s HEAD~3 notes.md
git restore --sour=HEAD src/changed.txt
git reset --hard
git reset --har
git reset --hard HEAD~1
git reset --hard -q
git add src/changed.txt; git reset -q --merge HEAD
git reset -q --hard HEAD~3
git clean -f
git clean -fdx
git clean -qfd draft
git clean --forc
git -c clean.requireForce=false clean
git stash -q && git stash drop -q
git stash -q -u && git stash clear
git switch -f main
git switch -q --discard-changes main
git switch -q --discard main
git rm -qf src/changed.txt
git rm -q --forc src/changed.txt
git mv -f kept.txt src/changed.txt
git read-tree -u --reset HEAD
git checkout-index -f -a
git -c alias.x='!rm notes.md' x
git diff --output=notes.md
git show --output=notes.md
git archive -o notes.md HEAD
git bundle create -q notes.md HEAD
git apply -q undo.patch
git stash push -q src/changed.txt; git stash drop -q
git worktree add -q ../w && touch ../w/x && git worktree remove --force ../w && rm notes.md
`
  .trim()
  .split('\n')
