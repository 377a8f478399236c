# Waits until every port with a link is Active, $1 seconds at most: a subnet manager that was just started first has a look round.
end=$(($(date +%s) + $1))
while ibstat | grep -q 'State: \(Initializing\|Armed\)'; do
  [ "$(date +%s)" -lt "$end" ] || exit 1
  sleep 1
done
