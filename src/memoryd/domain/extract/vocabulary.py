"""Word lists: what says nothing, what every coding conversation says, what questions ask with. Pure."""

from typing import Final

# Words that hold sentences together; apostrophes are already cut away ("dont", "l on").
_STOP_WORDS: Final = """
a about above after again against ain all also am an and any are aren as at be because been before being
below between both but by can cannot could couldn d did didn do does doesn doing don done down during each
either else ever every few for from further get gets getting go goes going gonna got had hadn has hasn have
haven having he her here hers herself hey hi him himself his how however i if in into is isn it its itself
just know let lets like ll m made make makes many may maybe me might more most much must my myself need needs
no nor not now of off oh ok okay on once one only onto or other our ours out over own please put quite
rather re really right s same see seems shall she should shouldn since so some something still such sure t
than thank thanks that the their theirs them themselves then there these they thing things think this those
though through to too try until up upon us use used uses using ve very want wants was wasn way we well were
weren what when where whether which while who whom whose why will with within without won would wouldn yeah
yes yet you your yours yourself first second two three new next last good great nice able actually already
arent cant couldnt didnt doesnt dont hadnt hasnt havent heres hes id ill im isnt ive lets shes shouldnt thats theres
theyre theyve wasnt werent weve whats wheres whos wont wouldnt youd youll youre youve
aber alle allem allen aller alles als also am an ander andere auch auf aus bei bin bis bist da damit dann das
dass dein dem den denn der des die dies diese diesem diesen dieser dieses doch dort du durch ein eine einem
einen einer eines er es etwas für gegen habe haben hat hatte hier ich ihm ihn ihr im in ist ja jede jetzt kann
kein keine können machen man mehr mein mich mir mit muss müssen nach nein nicht nichts noch nun nur ob oder
ohne schon sehr sein seine sich sie sind so soll sollte sollen über um und uns unser unter vom von vor war waren was
weil wenn wer werden wie wieder will wir wird wo zu zum zur zwischen bitte
au aux avec ce cela ces cette comme dans de des donc du elle elles en est et être eu fait il ils je la le les
leur lui ma mais mes moi mon même ne nos notre nous on ont ou où par pas plus pour qu que qui sa sans se ses
si son sont sur ta te toi ton tous tout très tu un une vos votre vous été
al algo como con cual cuando del desde donde dos el ella ellos entre era es esa ese eso esta este esto están
fue hay la las lo los más me mi muy nada ni nos o os otra otro para pero por porque que quien se ser si sin
sobre soy su sus también tan te tiene todo todos tu tus un una uno unos y ya yo
ao às com da das dele deles depois do dos e ela ele em essa esse está eu foi isso já mas meu minha muito na
nas no nos num não nós os ou para pela pelo por qual quem se sem ser seu sua são também tem um uma você
che chi ci con cui dal dalla dei del della delle di e gli il io la le lei lo loro ma mi nel nella non o per
più quella questo se si sono su sua sul tra un una voi è
aan als bij dat de deze die dit een en er het hij hoe ik in is je kan maar meer met mijn naar niet nog of om
ook op over te tot uit van voor was wat we wel werd wij zal ze zich zij zijn zo
а без был была были было быть в вам вас весь во вот все всё вы где да для до его ее её если есть еще ещё же
за и из или им их к как ко кто ли меня мне мы на надо нас не него нет ни но ну о об он она они от по под
при с сам свой себя со так также там тебя то того тоже только тут ты у уже что чтобы это этого этот я
"""
STOP: Final = frozenset(_STOP_WORDS.split())

# Words of every coding conversation: they are true of each segment and tell none from another.
_COMMON_WORDS: Final = """
add added adding agent approach assistant away back based basically bit call called case cases change changed
changes changing check checked checking clear code command complete completely context correct correctly create
created creates current currently different directly exact exactly example existing fact file files find fine fix
fixed following found full give given happen happened happening help helper idea implement implementation implemented
important include including information instead issue issues item items job keep kind line lines list little
look looking looks lot main mean means multiple number option options part place point possible problem
problems project proper properly question read reading ready real reason remove removed result results return
returns run running said say saying says section set show shows simple simply single specific start started state
step steps support supposed take takes task tell test tests text time tool type understand update updated updates
user users value various verify version whole work worked working works wrong write writing written
array async await boolean class const else elif enum export false float func function impl import int interface
let void namespace nil none null object private public pub self static str string struct true undefined var
echo grep sed cat awk null src lib usr bin tmp dev home etc
"""
COMMON: Final = frozenset(_COMMON_WORDS.split())

# What a question asks with, rather than about.
_ASKING_WORDS: Final = """
according answer anything asked become came caused cause come comes decide decided did else end ended ends
ever explain gave happen happened kept later left long made meant much name noticed part put reason react
reacted remind said settle settled someone still stop stopped supposed tell told took turned unless until went
"""
ASKING: Final = frozenset(_ASKING_WORDS.split())

# Names in the output of every tool and agent.
_EVERYWHERE_NAMES: Final = """
file_path tool_use tool_use_id tool_result old_string new_string activeform in_progress system-reminder output_mode subagent_type
replace_all session_id tool_name head_limit run_in_background is_error tool_uses total_tokens duration_ms utf-8 e.g i.e --no-pager
co-authored-by step-by-step up-to-date well-known end-to-end x86_64 node_modules max_output_tokens yield_time_ms workdir
"""
EVERYWHERE: Final = frozenset(_EVERYWHERE_NAMES.split())
