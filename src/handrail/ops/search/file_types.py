"""Knows ripgrep's names of file types, so that both engines and every dialect read a type in the same way."""

_TYPES = """
ada *.adb *.ads
agda *.agda *.lagda
alire alire.toml
amake *.bp *.mk
asciidoc *.adoc *.asc *.asciidoc
avro *.avdl *.avpr *.avsc
batch *.bat
bazel *.BUILD *.bazel *.bazelrc *.bzl BUILD MODULE.bazel WORKSPACE WORKSPACE.bazel WORKSPACE.bzlmod
bitbake *.bb *.bbappend *.bbclass *.conf *.inc
boxlang *.bx *.bxm *.bxs
brotli *.br
buildstream *.bst
bzip2 *.bz2 *.tbz2
candid *.did
cfml *.cfc *.cfm
clojure *.clj *.cljc *.cljs *.cljx
cmake *.cmake CMakeLists.txt
coffeescript *.coffee
config *.cfg *.conf *.config *.ini
container *Containerfile* *Dockerfile*
coq *.v
crystal *.cr *.ecr Projectfile shard.yml
csharp *.cs
cuda *.cu *.cuh
cython *.pxd *.pxi *.pyx
devicetree *.dts *.dtsi *.dtso
diff *.diff *.patch
dita *.dita *.ditamap *.ditaval
docker *Dockerfile*
dockercompose docker-compose.*.yml docker-compose.yml
ebuild *.ebuild *.eclass
elisp *.el
elixir *.eex *.ex *.exs *.heex *.leex *.livemd
erlang *.erl *.hrl
fennel *.fnl
flatbuffers *.fbs
fortran *.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo
fsharp *.fs *.fsi *.fsx
gdscript *.gd
gprbuild *.gpr
gradle *.gradle *.gradle.kts gradle-wrapper.* gradle.properties gradlew gradlew.bat
graphql *.graphql *.graphqls
groovy *.gradle *.groovy
gzip *.gz *.tgz
hare *.ha
haskell *.c2hs *.cpphs *.hs *.hsc *.lhs
html *.ejs *.htm *.html
idris *.idr *.lidr
java *.java *.jsp *.jspx *.properties
jinja *.j2 *.jinja *.jinja2
json *.json *.sarif composer.lock
julia *.jl
jupyter *.ipynb *.jpynb
kconfig Kconfig Kconfig.*
kotlin *.kt *.kts
license *[.-]LICEN[CS]E* AGPL-*[0-9]* APACHE-*[0-9]* BSD-*[0-9]* CC-BY-* COPYING COPYING[.-]* COPYRIGHT
  COPYRIGHT[.-]* EULA EULA[.-]* GFDL-*[0-9]* GNU-*[0-9]* GPL-*[0-9]* LGPL-*[0-9]* LICEN[CS]E LICEN[CS]E[.-]*
  MIT-*[0-9]* MPL-*[0-9]* NOTICE NOTICE[.-]* OFL-*[0-9]* PATENTS PATENTS[.-]* UNLICEN[CS]E UNLICEN[CS]E[.-]*
  agpl[.-]* gpl[.-]* lgpl[.-]* licen[cs]e licen[cs]e.*
lilypond *.ily *.ly
lisp *.el *.jl *.lisp *.lsp *.sc *.scm
llvm *.ll
lock *.lock package-lock.json
make *.mak *.mk Makefile.* [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile
  [Mm]akefile.am [Mm]akefile.in
mako *.mako *.mao
man *.[0-9][cEFMmpSx] *.[0-9lnpx]
markdown *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
matlab *.m
meson meson.build meson.options meson_options.txt
minified *.min.css *.min.html *.min.js
motoko *.mo
msbuild *.csproj *.fsproj *.proj *.props *.sln *.slnf *.targets *.vcxproj
objc *.h *.m
objcpp *.h *.mm
ocaml *.ml *.mli *.mll *.mly
pants BUILD
pascal *.dpr *.inc *.lpr *.pas *.pp
perl *.PL *.perl *.pl *.plh *.plx *.pm *.t
pkgbuild PKGBUILD
postscript *.eps *.ps
prolog *.P *.pl *.pro *.prolog
protobuf *.proto
puppet *.epp *.erb *.pp *.rb
python *.py *.pyi
qmake *.prf *.pri *.pro
qui *.ui
racket *.rkt
raku *.p6 *.pl6 *.pm6 *.raku *.rakudoc *.rakumod *.rakutest
readme *README README*
reasonml *.re *.rei
rescript *.res *.resi
rocq *.v
ruby *.gemspec *.rake *.rb *.rbw .irbrc Gemfile Rakefile config.ru
rust *.rs
sass *.sass *.scss
scala *.sbt *.scala
scdoc *.scd *.scdoc
seed7 *.s7i *.sd7
slim *.skim *.slim *.slime
smarty *.tpl
solidity *.sol
stylus *.styl
svelte *.svelte *.svelte.ts
swig *.def *.i
systemd *.automount *.conf *.device *.link *.mount *.path *.scope *.service *.slice *.socket *.swap *.target *.timer
texinfo *.texi
toml *.toml Cargo.lock
typescript *.cts *.mts *.ts *.tsx
typoscript *.ts *.typoscript
typst *.typ
verilog *.sv *.svh *.v *.vh
vhdl *.vhd *.vhdl
vimscript *.vim .gvimrc .vimrc _gvimrc _vimrc gvimrc vimrc
webidl *.idl *.webidl *.widl
wiki *.mediawiki *.wiki
yacc *.y
yaml *.yaml *.yml
zstd *.zst *.zstd
"""
# Names of up to three letters that are extensions as well (`py`, `ts`, `md`) are not here: they mean the extension.


def globs_of_type(name: str) -> tuple[str, ...]:
    """Return the globs of `py`, `.py`, `*.py` (an extension) or `python` (a type that ripgrep knows)."""
    bare = name.strip().removeprefix("*")
    if not bare.startswith("."):
        for line in _TYPES.replace("\n  ", " ").strip().split("\n"):
            known, *globs = line.split(" ")
            if known == bare.lower():
                return tuple(globs)
    return (f"*.{bare.lstrip('.')}",)
